#include "quant/ptq/constants.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>

#include "graph/mutation.h"
#include "quant/graph/rewrite_layer.h"

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
  tensors.reset();  // put_tensor() copies a tensor with other owners
  std::string hint = "p_" + target;
  std::replace_if(
      hint.begin(), hint.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  Value* value = module.mutable_graph().add_input({.name = hint, .meta = meta_of_tensor(tensor)},
                                                  InputKind::kParameter, target);
  module.put_tensor(target, tensor);
  return value;
}

void set_operand(Node& node, const std::string& operand, Value* value) {
  std::vector<NamedArgument> inputs = node.inputs();
  for (NamedArgument& input : inputs) {
    if (input.name != operand) continue;
    input.value = value;
    node.set_inputs(std::move(inputs));
    return;
  }
  const auto& schema = node.op()->schema();
  const auto wanted = schema.argumentIndexWithName(operand);
  const auto place = std::find_if(inputs.begin(), inputs.end(), [&](const NamedArgument& input) {
    return schema.argumentIndexWithName(input.name) > wanted;
  });
  inputs.insert(place, {operand, value});
  node.set_inputs(std::move(inputs));
}

void erase_unused_constants(GraphModule& module) {
  Graph& graph = module.mutable_graph();
  for (size_t i = graph.inputs().size(); i-- > 0;) {
    const GraphInput& input = graph.inputs()[i];
    if (input.kind == InputKind::kUser || !input.value->users().empty()) continue;
    const std::string target = input.target;
    graph.erase_input(i);
    const bool still_used = std::any_of(graph.inputs().begin(), graph.inputs().end(),
                                        [&](const GraphInput& each) { return each.target == target; });
    if (!still_used) module.erase_tensor(target);
  }
}

}  // namespace halftone::ptq
