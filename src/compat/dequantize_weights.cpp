// dequantize_weights(): the rewrite for mixed_mm off.
#include <ATen/core/Tensor.h>

#include <map>

#include "compat/rewrites.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"
#include "halftone/quant/weight_format.h"
#include "quant/graph/quantized_node.h"
#include "quant/graph/rewrite_layer.h"

namespace halftone::baseline {
namespace {

/// Whether only the weights are low-bit. Of configs that users bring that is not known.
bool is_weight_only(const QuantConfig& config) {
  if (const auto int4 = config.as<Int4WeightOnlyConfig>())
    return int4->activations == Int4Activations::kFloat;
  return config.as<Int8WeightOnlyConfig>() || config.as<Float8WeightOnlyConfig>() ||
         config.as<IntxWeightOnlyConfig>() || config.as<Bf16WeightOnlyConfig>();
}

class WeightDequantizer {
 public:
  explicit WeightDequantizer(GraphModule& module) : module_(module), graph_(module.mutable_graph()) {}

  void replace(Node& linear, const QuantizedNode& quantized) {
    Value* x = try_tensor(linear, "x");
    Value* bias = try_tensor(linear, "bias");
    Value* weight = dequantized(linear, quantized);
    const auto as = [&](Value* value, c10::ScalarType dtype) {
      if (value == nullptr || (value->meta() && value->meta()->dtype == dtype)) return value;
      std::optional<TensorMeta> meta = value->meta();
      if (meta) meta->dtype = dtype;
      return insert(linear, "aten::to.dtype", {{"self", value}, {"dtype", dtype}}, std::move(meta));
    };
    const std::optional<TensorMeta> result = linear.output()->meta();
    std::optional<TensorMeta> floats = result;
    if (floats) floats->dtype = at::kFloat;
    Value* y = insert(
        linear, "aten::linear",
        {{"input", as(x, at::kFloat)}, {"weight", weight}, {"bias", optional_tensor(as(bias, at::kFloat))}},
        floats);
    const c10::ScalarType dtype = result ? result->dtype : x->meta() ? x->meta()->dtype : at::kFloat;
    if (dtype != at::kFloat) y = as(y, dtype);
    graph_.replace_all_uses(linear.output(), y);
    graph_.erase(&linear);
  }

  void drop_old_weights() { remove_unused_weights(module_, old_targets_); }

 private:
  Value* insert(Node& before, std::string_view target, std::vector<NamedArgument> inputs,
                std::optional<TensorMeta> meta) {
    return graph_
        .insert(&before, target, std::move(inputs),
                {{before.output()->name() + "_f32", ValueType::kTensor, std::move(meta)}}, before.source())
        ->output();
  }

  /// A new parameter; linears that share a weight share it too.
  Value* dequantized(const Node& linear, const QuantizedNode& quantized) {
    QuantizedWeight weight{quantized.config,
                           format_of(quantized.config),
                           {quantized.layer.n, quantized.layer.k},
                           at::kFloat,
                           {}};
    std::string base;
    for (const char* part : {"weight", "scale", "zero_point"}) {
      const Value* value = try_tensor(linear, part);
      if (value == nullptr) continue;
      const std::string& target = graph_.inputs().at(value->index()).target;
      if (base.empty()) base = target;
      old_targets_.push_back(target);
      weight.parts.emplace_back(part, module_.tensor(target));
    }
    Value*& known = made_[base];
    if (known != nullptr) return known;
    const std::string name = part_name(base, "dequantized");
    TensorMeta meta = contiguous_meta(at::kFloat, {quantized.layer.n, quantized.layer.k});
    module_.put_tensor(name, weight.format->dequantize(weight).contiguous());
    known = graph_.add_input({linear.output()->name() + "_weight", ValueType::kTensor, std::move(meta)},
                             InputKind::kParameter, name);
    return known;
  }

  GraphModule& module_;
  Graph& graph_;
  std::vector<std::string> old_targets_;
  std::map<std::string, Value*> made_;
};

/// Why the linear has to stay, or "".
std::string why_it_keeps_its_weight(const Node& linear) {
  for (const char* part : {"weight", "scale", "zero_point"}) {
    const Value* value = try_tensor(linear, part);
    if (value != nullptr && value->producer() != nullptr) return "its weight is computed";
  }
  return "";
}

}  // namespace

void dequantize_weights(GraphModule& module, std::vector<std::string>& notes) {
  WeightDequantizer dequantizer(module);
  size_t done = 0;
  for (Node* node : snapshot(module.graph())) {
    const auto quantized = try_quantized_node(*node);
    if (!quantized || quantized->layer.kind != "linear" || !is_weight_only(quantized->config)) continue;
    if (const std::string why = why_it_keeps_its_weight(*node); !why.empty()) {
      notes.push_back(fmt::format("mixed_mm: layer \"{}\" stays low-bit: {}", quantized->layer.name, why));
      continue;
    }
    dequantizer.replace(*node, *quantized);
    ++done;
  }
  dequantizer.drop_old_weights();
  notes.push_back(fmt::format("mixed_mm: off; {} weights are in float32", done));
}

}  // namespace halftone::baseline
