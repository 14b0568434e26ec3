#include "compiler/passes/constants.h"

#include "compiler/passes/alias.h"
#include "graph/rewrite/stored_tensors.h"
#include "graph/run/mutation.h"

namespace halftone::compiler {

Constants::Constants(PassContext& context) : context_(context) {
  const std::vector<bool> written = inputs_written_in_place(context.graph);
  std::set<std::string_view> mutated;
  for (const GraphOutput& output : context.graph.outputs()) {
    if (output.kind == OutputKind::kBufferMutation) mutated.insert(output.target);
  }
  const auto& inputs = context.graph.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind == InputKind::kUser || written[i] || mutated.contains(inputs[i].target)) continue;
    if (context.tensors.contains(inputs[i].target)) values_.insert(inputs[i].value);
  }
}

at::Tensor Constants::tensor(const Value* value) const {
  if (value == nullptr || !holds(value)) return {};
  return context_.tensors.find(context_.graph.inputs()[value->index()].target)->second;
}

std::optional<double> Constants::number(const Argument& argument) const {
  if (const double* number = argument.get_if<double>()) return *number;
  if (const auto whole = argument.as_int()) return static_cast<double>(*whole);
  const at::Tensor tensor = this->tensor(argument.value());
  if (!tensor.defined() || tensor.dim() != 0 || tensor.is_complex() || !tensor.is_cpu()) return std::nullopt;
  return tensor.item().toDouble();
}

Value* Constants::add(const std::string& hint, at::Tensor tensor) {
  std::string target = "compiled." + hint;
  for (int suffix = 1; context_.tensors.contains(target); ++suffix)
    target = fmt::format("compiled.{}_{}", hint, suffix);
  Value* value = add_stored_input(context_.graph, hint, InputKind::kConstant, target, tensor);
  context_.tensors[target] = std::move(tensor);
  values_.insert(value);
  return value;
}

}  // namespace halftone::compiler
