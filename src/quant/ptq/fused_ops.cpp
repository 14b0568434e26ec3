#include "quant/ptq/fused_ops.h"

#include <algorithm>
#include <set>

#include "quant/ptq/op_names.h"

namespace halftone::ptq {
namespace {

const std::set<std::string, std::less<>>& operators_with_weights() {
  static const std::set<std::string, std::less<>> list = {
      "aten::conv1d",           "aten::conv2d",           "aten::conv3d",
      "aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d",
      "aten::linear",           "aten::embedding",        "aten::embedding_bag"};
  return list;
}

const std::set<std::string, std::less<>>& operators_with_parameters() {
  static const std::set<std::string, std::less<>> list = {
      "aten::batch_norm", "aten::layer_norm", "aten::group_norm", "aten::instance_norm", "aten::prelu"};
  return list;
}

/// Whether the second operand may be a number: then it counts as an argument that is not a tensor.
bool is_binary(std::string_view base) {
  static const std::set<std::string, std::less<>> list = {"aten::add", "aten::sub", "aten::mul", "aten::div",
                                                          "aten::floor_divide"};
  return list.contains(base);
}

void append_tensors(const Argument& argument, std::vector<Value*>& args) {
  if (Value* value = argument.value()) {
    if (value->type() == ValueType::kTensor) args.push_back(value);
  } else if (const Argument::List* list = argument.list()) {
    for (const Argument& each : *list) append_tensors(each, args);
  }
}

std::vector<Value*> arguments_of(const Node& node) {
  std::vector<Value*> args;
  const bool binary = is_binary(base_name(node.target()));
  for (const NamedArgument& input : node.inputs()) {
    if (is_parameter_operand(node, input.name)) continue;
    const size_t before = args.size();
    append_tensors(input.value, args);
    if (binary && args.size() == before && (input.name == "self" || input.name == "other"))
      args.push_back(nullptr);
  }
  return args;
}

}  // namespace

bool FusedOp::goes_by(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_quantizable_weight(const Node& node) {
  return operators_with_weights().contains(base_name(node.target()));
}

bool is_parameter_operand(const Node& node, std::string_view operand) {
  static const std::set<std::string, std::less<>> names = {"weight", "bias", "running_mean", "running_var"};
  return names.contains(operand) &&
         (has_quantizable_weight(node) || operators_with_parameters().contains(base_name(node.target())));
}

FusedOpGraph::FusedOpGraph(Graph& graph) {
  for (const auto& node : graph.nodes()) {
    auto fused_op = std::make_unique<FusedOp>();
    fused_op->nodes = {node.get()};
    fused_op->root = node.get();
    fused_op->names = names_of(*node);
    fused_op->layer = node->source().layer;
    fused_op->is_module = is_module_call(*node);
    fused_op->args = arguments_of(*node);
    index(fused_op.get());
    fused_ops_.push_back(std::move(fused_op));
  }
}

void FusedOpGraph::index(FusedOp* fused_op) {
  for (const Value* output : fused_op->nodes.back()->outputs()) producers_[output] = fused_op;
}

FusedOp* FusedOpGraph::producer(const Value* value) const {
  const auto found = producers_.find(value);
  return found != producers_.end() ? found->second : nullptr;
}

void FusedOpGraph::erase(FusedOp* fused_op) {
  std::erase_if(producers_, [&](const auto& entry) { return entry.second == fused_op; });
  std::erase_if(fused_ops_, [&](const auto& each) { return each.get() == fused_op; });
}

FusedOp* FusedOpGraph::fuse(const std::vector<FusedOp*>& parts, FusedOp* root, const std::string& type) {
  FusedOp* last = parts.back();
  auto joined = std::make_unique<FusedOp>();
  joined->root = root->root;
  joined->names = type.empty() ? root->names : std::vector<std::string>{type};
  joined->root_names = root->names;
  joined->layer = root->layer;
  joined->is_module = true;
  joined->args = root->args;
  std::set<const Value*> inside;
  for (const FusedOp* part : parts) {
    joined->nodes.insert(joined->nodes.end(), part->nodes.begin(), part->nodes.end());
    inside.insert(part->output());
  }
  for (const FusedOp* part : parts) {
    if (part == root) continue;
    for (Value* arg : part->args) {
      if (arg != nullptr && !inside.contains(arg)) joined->args.push_back(arg);
    }
  }
  FusedOp* made = joined.get();
  const auto place = std::find_if(fused_ops_.begin(), fused_ops_.end(),
                                  [&](const auto& each) { return each.get() == last; });
  fused_ops_.insert(place, std::move(joined));
  for (FusedOp* part : parts) erase(part);
  index(made);
  return made;
}

}  // namespace halftone::ptq
