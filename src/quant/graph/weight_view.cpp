#include "quant/graph/weight_view.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "graph/operators/op_traits.h"

namespace halftone {
namespace {

/// Operators whose result has elements of their first operand in the same places of its storage.
constexpr OpTraits kViews = OpTrait::kReshape | OpTrait::kPermutation | OpTrait::kPart;

/// "aten::slice_copy.Tensor" → "aten::slice.Tensor": what functional graphs write for views.
std::string view_target(const std::string& target) {
  constexpr std::string_view kCopy = "_copy";
  const size_t end = std::min(target.find('.'), target.size());
  const bool copies = end > kCopy.size() && std::string_view(target).substr(0, end).ends_with(kCopy);
  if (!copies || target == "aten::_to_copy") return target;
  return target.substr(0, end - kCopy.size()) + target.substr(end);
}

/// Whether the node's first operand is its only value.
bool has_one_operand(const Node& node) {
  return !node.inputs().empty() && node.input(0).value() != nullptr && node.input_values().size() == 1;
}

/// The node's result for that operand, computed by running it. Nothing if it is not a view of it.
std::optional<at::Tensor> apply_view(const Node& node, const std::string& target, const at::Tensor& tensor,
                                     size_t item) {
  auto graph = std::make_unique<Graph>();
  Value* operand = graph->add_input({.name = "operand"});
  std::vector<NamedArgument> inputs = node.inputs();
  inputs.front().value = operand;
  const ValueType type = node.output()->type();
  const Node* copy = graph->append(target, std::move(inputs), {{.name = "result", .type = type}});
  graph->set_outputs({copy->output()}, {GraphOutput{}});
  try {
    Session session(std::make_shared<const GraphModule>(std::move(graph), TensorMap{}, CallSpec{}));
    const c10::IValue result = session.run({tensor}).at(0);
    at::Tensor view = result.isTensor() ? result.toTensor() : result.toTensorVector().at(item);
    return view.is_alias_of(tensor) ? std::optional(std::move(view)) : std::nullopt;
  } catch (const std::exception&) {  // a view that this tensor's strides do not allow; the layer is then kept
    return std::nullopt;
  }
}

std::optional<c10::ScalarType> cast_dtype(const Node& node, c10::ScalarType dtype) {
  if (node.is("aten::type_as") || node.is("aten::to.other")) {
    const Value* other = node.input(1).value();
    return other != nullptr && other->meta() ? std::optional(other->meta()->dtype) : std::nullopt;
  }
  const Argument* given = node.try_input("dtype");
  if (given == nullptr || given->is_none()) return dtype;
  const auto* constant = given->get_if<c10::ScalarType>();
  return constant != nullptr ? std::optional(*constant) : std::nullopt;
}

/// expand of a matrix to [b, k, n] (b may be symbolic), and the views that decompositions put around it.
bool repeats_matrix(const Node& node, const WeightView& source) {
  const bool expands = node.is("aten::expand") || node.is("aten::expand_copy");
  const bool views = node.is("aten::view") || node.is("aten::_unsafe_view") || node.is("aten::reshape");
  if (!expands && !(views && source.expanded)) return false;
  const auto& meta = node.output()->meta();
  const auto& sizes = source.tensor.sizes();
  return sizes.size() == 2 && meta && meta->sizes.size() == 3 && meta->sizes[1] == SymExpr(sizes[0]) &&
         meta->sizes[2] == SymExpr(sizes[1]);
}

}  // namespace

WeightTracer::WeightTracer(const GraphModule& module) : module_(module), tensors_(module.tensors()) {
  for (const GraphInput& input : module.graph().inputs()) {
    if (input.kind != InputKind::kUser) roots_.emplace(input.value, input.value->index());
  }
  // Nodes stand in execution order, so operands are known before their users.
  for (const auto& node : module.graph().nodes()) {
    const std::vector<Value*> operands = node->input_values();
    const bool constant = std::all_of(operands.begin(), operands.end(),
                                      [&](const Value* value) { return roots_.contains(value); });
    if (!constant || operands.empty()) continue;
    for (const Value* output : node->outputs()) roots_.emplace(output, roots_.at(operands.front()));
  }
}

std::optional<WeightView> WeightTracer::trace_input(const Value& value) const {
  const GraphInput& input = value.graph().inputs()[value.index()];
  if (input.kind == InputKind::kUser || &value.graph() != &module_.graph()) return std::nullopt;
  const auto found = tensors_->find(input.target);
  if (found == tensors_->end()) return std::nullopt;
  return WeightView{value.index(), found->second.detach(), found->second.scalar_type()};
}

std::optional<WeightView> WeightTracer::trace_node(const Node& node, const Value& output) {
  if (node.is("builtin::unpack") || node.is("builtin::getitem")) {
    const Value* list = node.input(0).value();
    const Node* split = list != nullptr ? list->producer() : nullptr;
    if (split == nullptr || !has_trait(view_target(split->target()), OpTrait::kSplit) ||
        !has_one_operand(*split))
      return std::nullopt;
    auto source = trace(split->input(0).value());
    if (!source || source->expanded) return std::nullopt;
    const int64_t item = node.is("builtin::unpack") ? static_cast<int64_t>(output.index())
                                                    : node.input(1).as_int().value_or(-1);
    if (item < 0) return std::nullopt;
    auto view = apply_view(*split, view_target(split->target()), source->tensor, static_cast<size_t>(item));
    if (!view) return std::nullopt;
    source->tensor = std::move(*view);
    return source;
  }
  if (node.op() == nullptr || node.inputs().empty() || node.input(0).value() == nullptr) return std::nullopt;
  const std::string target = view_target(node.target());
  const bool view = has_trait(target, kViews) && has_one_operand(node);
  const bool copy = has_trait(target, OpTrait::kSameElements);
  const bool cast = has_trait(node, OpTrait::kCast);
  const bool expand = target == "aten::expand" || target == "aten::view" || target == "aten::_unsafe_view" ||
                      target == "aten::reshape";
  if (!view && !copy && !cast && !expand) return std::nullopt;
  auto source = trace(node.input(0).value());
  if (!source || copy) return source;
  if (expand && repeats_matrix(node, *source)) {
    source->expanded = true;
    return source;
  }
  if (source->expanded) return std::nullopt;
  if (cast) {
    const auto dtype = cast_dtype(node, source->dtype);
    if (!dtype || !c10::isFloatingType(*dtype)) return std::nullopt;
    source->dtype = *dtype;
    return source;
  }
  if (!view) return std::nullopt;
  auto result = apply_view(node, target, source->tensor, 0);
  if (!result) return std::nullopt;
  source->tensor = std::move(*result);
  return source;
}

std::optional<WeightView> WeightTracer::trace(const Value* value) {
  if (value == nullptr || value->type() != ValueType::kTensor) return std::nullopt;
  if (const auto found = known_.find(value); found != known_.end()) return found->second;
  auto view = value->producer() == nullptr ? trace_input(*value) : trace_node(*value->producer(), *value);
  return known_.emplace(value, std::move(view)).first->second;
}

std::optional<size_t> WeightTracer::constant_root(const Value* value) const {
  const auto found = roots_.find(value);
  return found != roots_.end() ? std::optional(found->second) : std::nullopt;
}

std::string describe_part(const at::Tensor& view, const at::Tensor& stored) {
  if (view.numel() == stored.numel()) return {};
  const int64_t offset = view.storage_offset() - stored.storage_offset();
  const int64_t width = stored.dim() > 0 && stored.size(0) > 0 ? stored.numel() / stored.size(0) : 0;
  const bool rows = width > 0 && stored.is_contiguous() && view.is_non_overlapping_and_dense();
  if (rows && offset % width == 0 && view.numel() % width == 0) {
    return fmt::format("[{}:{}]", offset / width, (offset + view.numel()) / width);
  }
  return fmt::format("[+{}]", offset);
}

}  // namespace halftone
