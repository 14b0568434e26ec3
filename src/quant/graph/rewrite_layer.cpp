#include "quant/graph/rewrite_layer.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/errors.h"
#include "graph/operators.h"
#include "graph/text_names.h"
#include "quant/graph/quantized_node.h"

namespace halftone {
namespace {

/// What a fresh, contiguous result of that shape looks like: recorded strides may be those of another kernel.
std::optional<TensorMeta> contiguous(std::optional<TensorMeta> meta) {
  if (!meta) return meta;
  meta->strides = contiguous_strides(meta->sizes).value_or(std::vector<SymExpr>{});
  return meta;
}

/// The same with the last two dimensions exchanged.
std::optional<TensorMeta> transposed(std::optional<TensorMeta> meta) {
  if (!meta || meta->sizes.size() < 2) return std::nullopt;
  const size_t last = meta->sizes.size() - 1;
  std::swap(meta->sizes[last], meta->sizes[last - 1]);
  if (meta->strides.size() == meta->sizes.size()) std::swap(meta->strides[last], meta->strides[last - 1]);
  return meta;
}

/// Operands of the format's operator, in the order of its schema.
std::vector<NamedArgument> operands(const FormatOp& op, const PlacedWeight& weight, Value* x, Value* bias) {
  const c10::OperatorHandle* handle = try_operator(op.target);
  if (handle == nullptr)
    fail(ErrorCode::kUnsupported, "{}: no operator of that name is registered", op.target);
  std::vector<NamedArgument> inputs;
  for (const c10::Argument& argument : handle->schema().arguments()) {
    const std::string& name = argument.name();
    if (name == "x" || name == "indices") inputs.push_back({name, x});
    if (name == "bias" && bias != nullptr) inputs.push_back({name, bias});
    if (name == "parts") {
      Argument::List parts;
      for (const auto& [part, value] : weight.parts) parts.emplace_back(value);
      inputs.push_back({name, std::move(parts)});
    }
    for (const auto& [part, value] : weight.parts) {
      if (part == name) inputs.push_back({name, value});
    }
    for (const NamedArgument& constant : op.constants) {
      if (constant.name == name) inputs.push_back(constant);
    }
  }
  return inputs;
}

/// A vector of n elements, which the operator adds itself; other shapes are added by a node of their own.
bool is_row(const Value& bias, int64_t n) {
  return bias.meta() && bias.meta()->sizes.size() == 1 && bias.meta()->sizes[0] == SymExpr(n);
}

class Rewriter {
 public:
  Rewriter(Graph& graph, const LayerUse& use, const PlacedWeight& weight)
      : graph_(graph), node_(*use.node), spelling_(use.spelling), weight_(weight) {}

  void run() {
    if (spelling_ == Spelling::kConvolution) return restore_weight();
    Value* result = nullptr;
    const auto meta = contiguous(node_.output()->meta());
    switch (spelling_) {
      case Spelling::kEmbedding:
        result =
            append(weight_.weight.format->embedding_op(weight_.weight), operand("indices"), nullptr, meta);
        break;
      case Spelling::kConvolution:  // above
        break;
      case Spelling::kConv1d:
        result = rewrite_conv();
        break;
      case Spelling::kLinear:
        result = linear(operand("input"), optional_operand("bias"), meta);
        break;
      case Spelling::kAddmm:
        result = linear(operand("mat1"), operand("self"), meta);
        break;
      case Spelling::kMatmul:
        result = linear(operand("self"), nullptr, meta);
        break;
    }
    const std::string name = node_.output()->name();
    graph_.replace_all_uses(node_.output(), result);
    graph_.erase(&node_);
    graph_.rename(result, name);
  }

 private:
  Value* operand(std::string_view name) const {
    Value* value = optional_operand(name);
    if (value == nullptr) fail(ErrorCode::kInternal, "{}: operand {} is no value", node_.target(), name);
    return value;
  }

  Value* optional_operand(std::string_view name) const {
    const Argument* argument = node_.try_input(name);
    return argument != nullptr ? argument->value() : nullptr;
  }

  Value* insert(std::string_view target, std::vector<NamedArgument> inputs, std::optional<TensorMeta> meta) {
    OutputSpec spec{.name = node_.output()->name(), .meta = std::move(meta)};
    return graph_.insert(&node_, target, std::move(inputs), {std::move(spec)}, node_.source())->output();
  }

  Value* append(const FormatOp& op, Value* x, Value* bias, std::optional<TensorMeta> meta) {
    return insert(op.target, operands(op, weight_, x, bias), std::move(meta));
  }

  Value* linear(Value* x, Value* bias, const std::optional<TensorMeta>& meta) {
    const FormatOp op = weight_.weight.format->linear_op(weight_.weight);
    if (bias == nullptr || is_row(*bias, weight_.weight.sizes[0])) return append(op, x, bias, meta);
    // A sum that is not a bias: as wide as the result, one row, or a single number.
    return insert("aten::add.Tensor", {{"self", append(op, x, nullptr, meta)}, {"other", bias}}, meta);
  }

  /// The node stays, on a weight that is restored in front of it.
  void restore_weight() {
    const FormatOp op = weight_.weight.format->convolution_op(weight_.weight);
    TensorMeta meta = meta_of_tensor(weight_.weight.parts.front().second);
    meta.dtype = weight_.weight.dtype;
    OutputSpec spec{.name = node_.output()->name() + "_weight", .meta = std::move(meta)};
    Value* restored = graph_
                          .insert(&node_, op.target, operands(op, weight_, nullptr, nullptr),
                                  {std::move(spec)}, node_.source())
                          ->output();
    for (size_t i = 0; i < node_.inputs().size(); ++i) {
      if (node_.inputs()[i].name == "weight") node_.set_input(i, restored);
    }
  }

  /// x is [b, k, length] or [k, length], so the channels must become the last dimension and go back.
  Value* rewrite_conv() {
    Value* x = operand("input");
    const auto last_two = [](Value* value) -> std::vector<NamedArgument> {
      return {{"self", value}, {"dim0", -2}, {"dim1", -1}};
    };
    const auto meta = contiguous(node_.output()->meta());
    auto swapped = transposed(node_.output()->meta());
    Value* rows = insert("aten::transpose.int", last_two(x), transposed(x->meta()));
    Value* product = linear(rows, optional_operand("bias"), contiguous(swapped));
    Value* back = insert("aten::transpose.int", last_two(product), transposed(contiguous(swapped)));
    // What comes after may ask for views that only the convolution's own layout allows.
    return insert("aten::clone", {{"self", back}, {"memory_format", c10::MemoryFormat::Contiguous}}, meta);
  }

  Graph& graph_;
  Node& node_;
  Spelling spelling_;
  const PlacedWeight& weight_;
};

/// What reads one of the values, and what reads its results, to the end of the graph.
std::unordered_set<const Node*> nodes_below(const std::vector<Value*>& values) {
  std::unordered_set<const Node*> below;
  std::vector<const Value*> pending(values.begin(), values.end());
  while (!pending.empty()) {
    const Value* value = pending.back();
    pending.pop_back();
    for (const Node* user : value->users()) {
      if (below.insert(user).second)
        pending.insert(pending.end(), user->outputs().begin(), user->outputs().end());
    }
  }
  return below;
}

/// Erases nodes after the values whose results are not used, so that views of a weight do not
/// keep it. One walk over the nodes, however many paths lead through them: a residual network of n layers has
/// 2^n.
void erase_dead_users(Graph& graph, const std::vector<Value*>& values) {
  const std::unordered_set<const Node*> below = nodes_below(values);
  std::vector<Node*> last_first;
  for (const auto& node : graph.nodes()) {
    if (below.contains(node.get()) && !has_side_effects(*node)) last_first.push_back(node.get());
  }
  std::reverse(last_first.begin(), last_first.end());
  for (Node* node : last_first) {
    const bool dead = std::all_of(node->outputs().begin(), node->outputs().end(),
                                  [](const Value* output) { return output->users().empty(); });
    if (dead) graph.erase(node);
  }
}

std::string free_base(const TensorMap& tensors, const QuantizedWeight& weight, const std::string& base) {
  for (int number = 1;; ++number) {
    const std::string candidate = number == 1 ? base : fmt::format("{}:{}", base, number);
    const bool taken = std::any_of(weight.parts.begin(), weight.parts.end(), [&](const auto& part) {
      return tensors.contains(part_name(candidate, part.first));
    });
    if (!taken) return candidate;
  }
}

}  // namespace

TensorMeta meta_of_tensor(const at::Tensor& tensor) {
  TensorMeta meta;
  meta.dtype = tensor.scalar_type();
  for (const int64_t size : tensor.sizes()) meta.sizes.emplace_back(size);
  for (const int64_t stride : tensor.strides()) meta.strides.emplace_back(stride);
  return meta;
}

PlacedWeight place_weight(GraphModule& module, QuantizedWeight weight, const std::string& base) {
  Graph& graph = module.mutable_graph();
  const std::string name = free_base(*module.tensors(), weight, base);
  PlacedWeight placed{std::move(weight), {}};
  for (const auto& [part, tensor] : placed.weight.parts) {
    const std::string target = part_name(name, part);
    std::string hint = "p_" + target;
    std::replace_if(
        hint.begin(), hint.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    placed.parts.emplace_back(
        part, graph.add_input({.name = hint, .meta = meta_of_tensor(tensor)}, InputKind::kParameter, target));
    module.put_tensor(target, tensor);
  }
  return placed;
}

void rewrite_use(Graph& graph, const LayerUse& use, const PlacedWeight& weight) {
  Rewriter(graph, use, weight).run();
}

void remove_unused_weights(GraphModule& module, const std::vector<std::string>& targets) {
  Graph& graph = module.mutable_graph();
  const auto tensors = module.tensors();
  const std::unordered_set<std::string_view> names(targets.begin(), targets.end());
  const auto memory_of = [](const at::Tensor& tensor) -> const void* {
    return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
  };
  std::unordered_multimap<const void*, at::Tensor> by_memory;  // tied weights go by several names
  for (const std::string& target : targets) {
    const auto found = tensors->find(target);
    if (found != tensors->end()) by_memory.emplace(memory_of(found->second), found->second);
  }
  const auto is_candidate = [&](const GraphInput& input) {
    if (input.kind == InputKind::kUser) return false;
    if (names.contains(input.target)) return true;
    const auto mine = tensors->find(input.target);
    if (mine == tensors->end() || memory_of(mine->second) == nullptr) return false;
    const auto [first, last] = by_memory.equal_range(memory_of(mine->second));
    return std::any_of(first, last, [&](const auto& entry) {
      return mine->second.storage_offset() == entry.second.storage_offset() &&
             mine->second.sizes() == entry.second.sizes();
    });
  };
  std::vector<Value*> candidates;
  for (const GraphInput& input : graph.inputs()) {
    if (is_candidate(input)) candidates.push_back(input.value);
  }
  erase_dead_users(graph, candidates);
  const std::unordered_set<const Value*> wanted(candidates.begin(), candidates.end());
  for (size_t i = graph.inputs().size(); i-- > 0;) {
    const GraphInput& input = graph.inputs()[i];
    if (!wanted.contains(input.value) || !input.value->users().empty()) continue;
    module.erase_tensor(input.target);
    graph.erase_input(i);
  }
}

}  // namespace halftone
