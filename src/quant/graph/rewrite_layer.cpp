#include "quant/graph/rewrite_layer.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "graph/operators/operators.h"
#include "graph/rewrite/edit.h"
#include "graph/rewrite/layout.h"
#include "graph/rewrite/stored_tensors.h"
#include "graph/rewrite/unused_inputs.h"
#include "quant/graph/quantized_node.h"

namespace halftone {
namespace {

/// The metadata with the last two dimensions exchanged.
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
      : graph_(graph), node_(*use.node), form_(use.form), weight_(weight) {}

  void run() {
    if (form_ == LinearForm::kConvolution) return restore_weight();
    Value* result = nullptr;
    const auto meta = with_contiguous_strides(node_.output()->meta());
    switch (form_) {
      case LinearForm::kEmbedding:
        result =
            append(weight_.weight.format->embedding_op(weight_.weight), operand("indices"), nullptr, meta);
        break;
      case LinearForm::kConvolution:  // above
        break;
      case LinearForm::kConv1d:
        result = rewrite_conv();
        break;
      case LinearForm::kLinear:
        result = linear(operand("input"), optional_operand("bias"), meta);
        break;
      case LinearForm::kAddmm:
        result = linear(operand("mat1"), operand("self"), meta);
        break;
      case LinearForm::kMatmul:
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
    set_operand(node_, "weight", restored);
  }

  /// x is [b, k, length] or [k, length], so the channels must become the last dimension and go back.
  Value* rewrite_conv() {
    Value* x = operand("input");
    const auto last_two = [](Value* value) -> std::vector<NamedArgument> {
      return {{"self", value}, {"dim0", -2}, {"dim1", -1}};
    };
    const auto meta = with_contiguous_strides(node_.output()->meta());
    auto swapped = transposed(node_.output()->meta());
    Value* rows = insert("aten::transpose.int", last_two(x), transposed(x->meta()));
    Value* product = linear(rows, optional_operand("bias"), with_contiguous_strides(swapped));
    Value* back =
        insert("aten::transpose.int", last_two(product), transposed(with_contiguous_strides(swapped)));
    // What comes after may ask for views that only the convolution's own layout allows.
    return insert("aten::clone", {{"self", back}, {"memory_format", c10::MemoryFormat::Contiguous}}, meta);
  }

  Graph& graph_;
  Node& node_;
  LinearForm form_;
  const PlacedWeight& weight_;
};

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

PlacedWeight place_weight(GraphModule& module, QuantizedWeight weight, const std::string& base) {
  Graph& graph = module.mutable_graph();
  const std::string name = free_base(*module.tensors(), weight, base);
  PlacedWeight placed{std::move(weight), {}};
  for (const auto& [part, tensor] : placed.weight.parts) {
    const std::string target = part_name(name, part);
    placed.parts.emplace_back(
        part, add_stored_input(graph, value_name_for("p_", target), InputKind::kParameter, target, tensor));
    module.put_tensor(target, tensor);
  }
  return placed;
}

void rewrite_use(Graph& graph, const LayerUse& use, const PlacedWeight& weight) {
  Rewriter(graph, use, weight).run();
}

void remove_unused_weights(GraphModule& module, const std::vector<std::string>& targets) {
  const auto tensors = module.tensors();
  remove_unused_inputs(module, {.dead_users = true, .candidate = named_or_tied(*tensors, targets)});
}

}  // namespace halftone
