#include "quant/ptq/constants.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/rewrite/stored_tensors.h"
#include "graph/run/mutation.h"

namespace halftone::ptq {
namespace {

const GraphInput* input_behind(const Node& node, std::string_view operand) {
  const Argument* argument = node.try_input(operand);
  const Value* value = argument != nullptr ? argument->value() : nullptr;
  if (value == nullptr || value->producer() != nullptr) return nullptr;
  const GraphInput& input = value->graph().inputs().at(value->index());
  return input.kind != InputKind::kUser ? &input : nullptr;
}

}  // namespace

bool has_operand(const Node& node, std::string_view operand) {
  const Argument* argument = node.try_input(operand);
  return argument != nullptr && !argument->is_none();
}

at::Tensor constant_operand(const GraphModule& module, const Node& node, std::string_view operand,
                            const std::vector<std::string>& written) {
  const GraphInput* input = input_behind(node, operand);
  if (input == nullptr) return {};
  if (std::find(written.begin(), written.end(), input->target) != written.end()) return {};
  return module.tensor(input->target).detach();
}

std::string name_of_constant(const Node& node, std::string_view operand) {
  const GraphInput* input = input_behind(node, operand);
  return input != nullptr ? input->target : std::string();
}

Value* add_constant(GraphModule& module, const std::string& name, const at::Tensor& tensor) {
  auto tensors = module.tensors();
  std::string target = name;
  for (int number = 2; tensors->contains(target); ++number) target = fmt::format("{}:{}", name, number);
  tensors.reset();  // put_tensor() copies what somebody else holds
  Value* value = add_stored_input(module.mutable_graph(), value_name_for("p_", target), InputKind::kParameter,
                                  target, tensor);
  module.put_tensor(target, tensor);
  return value;
}

}  // namespace halftone::ptq
