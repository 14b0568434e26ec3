#include "quant/graph/quantize_graph.h"

#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/errors.h"
#include "halftone/graph/graph_module.h"
#include "halftone/quant/quantize.h"
#include "halftone/quant/weight_format.h"
#include "quant/graph/find_layers.h"
#include "quant/graph/left_alone_graph.h"
#include "quant/graph/rewrite_layer.h"
#include "quant/select/layer_chooser.h"
#include "quant/weight/arithmetic/bits.h"
#include "quant/weight/arithmetic/levels.h"

namespace halftone {
namespace {

using Outcome = LayerReport::Outcome;

bool same_parts(const QuantizedWeight& a, const QuantizedWeight& b) {
  return std::equal(
      a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(), [](const auto& x, const auto& y) {
        return x.first == y.first && x.second.scalar_type() == y.second.scalar_type() &&
               x.second.sizes() == y.second.sizes() &&
               (x.second.is_same(y.second) || at::equal(x.second.contiguous(), y.second.contiguous()));
      });
}

/// The elements of memory that a weight is: equal for tied weights, whatever their names are.
using WeightMemory = std::tuple<const void*, int64_t, size_t>;

WeightMemory memory_of(const GraphLayer& layer) {
  return {layer.matrix.storage().unsafeGetStorageImpl(), layer.matrix.storage_offset(),
          layer.matrix.nbytes()};
}

/// A weight that need not be quantized any more.
struct GivenWeight {
  QuantConfig config;
  Parts parts;
};
/// By the layer's name.
using GivenWeights = std::map<std::string, GivenWeight>;

/// Quantized weights, each once: a linear and an embedding that share a weight share its quantized tensors
/// too, where their configs give the same ones.
class WeightPool {
 public:
  /// The index of the layer's weight. `given`: nullptr, or what it has become already.
  size_t quantize(const GraphLayer& layer, const QuantConfig& config, const GivenWeight* given) {
    QuantizedWeight weight = given ? QuantizedWeight{config, format_of(config), layer.matrix.sizes().vec(),
                                                     layer.dtype, given->parts}
                                   : quantize_weight(layer.matrix.to(layer.dtype), config, layer.info.name);
    if (layer.weight
            .defined()) {  // a convolution's keeps its shape, and its layout decides that of the result
      at::Tensor& integers = weight.parts.front().second;
      integers = integers.view(layer.weight.sizes()).contiguous(layer.weight.suggest_memory_format());
    }
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (memories_[i] == memory_of(layer) && same_parts(weights_[i], weight)) return i;
    }
    weights_.push_back(std::move(weight));
    bases_.push_back(layer.base);
    memories_.push_back(memory_of(layer));
    return weights_.size() - 1;
  }
  const QuantizedWeight& weight(size_t index) const { return weights_[index]; }

  /// Puts the weight into the module at its first use. The tensors are shared: a weight has one config for
  /// each use.
  PlacedWeight place(GraphModule& module, size_t index, const QuantConfig& config) {
    if (placed_.size() < weights_.size()) placed_.resize(weights_.size());
    if (!placed_[index]) placed_[index] = place_weight(module, weights_[index], bases_[index]);
    PlacedWeight placed = *placed_[index];
    placed.weight.config = config;
    placed.weight.format = format_of(config);
    return placed;
  }

 private:
  std::vector<QuantizedWeight> weights_;
  std::vector<std::string> bases_;
  std::vector<WeightMemory> memories_;
  std::vector<std::optional<PlacedWeight>> placed_;
};

/// What else needs a weight that was quantized: it stays in the model beside its quantized form.
std::string describe_other_uses(const Graph& graph, const std::string& target) {
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind == InputKind::kUser || input.target != target || input.value->users().empty()) continue;
    const Node& user = *input.value->users().front();
    return fmt::format("the weight stays too, for {}",
                       user.is("return") ? "the model returns it" : user.target());
  }
  return {};
}

std::string stored_name(const GraphLayer& layer) {
  return layer.base.substr(0, layer.base.find('['));
}

/// Names of the stored tensors that the caller's options keep.
std::set<std::string> kept_by_choice(const std::vector<GraphLayer>& layers, const QuantizeReport& report) {
  std::set<std::string> names;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerReport& entry = report.layers[i];
    if (entry.outcome == Outcome::kKept && !entry.untouched) names.insert(stored_name(layers[i]));
  }
  return names;
}

/// A weight that an earlier layer had quantized: counted there.
void note_ties(const std::vector<GraphLayer>& layers, const std::vector<size_t>& weights,
               std::vector<LayerReport>& reports) {
  std::map<WeightMemory, size_t> first;
  std::set<size_t> counted;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (reports[i].outcome != Outcome::kQuantized) continue;
    const auto [earlier, is_new] = first.emplace(memory_of(layers[i]), i);
    if (!is_new) reports[i].tied_to = reports[earlier->second].layer.name;
    reports[i].own_tensors = counted.insert(weights[i]).second;
  }
}

QuantizeReport quantize_in_place(GraphModule& module, const QuantConfig& config,
                                 const QuantizeOptions& options, const GivenWeights& given = {}) {
  Graph& graph = module.mutable_graph();
  const std::vector<GraphLayer> layers = find_layers(module);
  QuantizeReport report;
  report.bytes_before = bytes_of_tensors(*module.tensors());
  LayerChooser chooser(config, options);
  for (const GraphLayer& layer : layers) {
    report.layers.push_back(chooser.choose(layer.info, layer.state));
    LayerReport& entry = report.layers.back();
    entry.bytes_before = entry.bytes_after = layer.bytes;
    const auto found = given.find(layer.info.name);
    if (found != given.end() && entry.outcome == Outcome::kQuantized) entry.config = found->second.config;
  }
  const std::set<std::string> chosen = kept_by_choice(layers, report);
  const auto left_alone = [&] {
    return group_left_alone(find_untouched(module, chosen), report.bytes_before, config);
  };
  report.left_alone = left_alone();  // for a refusal; made again when the weights are replaced
  chooser.finish(report.left_alone);

  // Everything that can fail comes before the first change.
  WeightPool pool;
  std::vector<size_t> weights(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    LayerReport& entry = report.layers[i];
    if (options.progress)
      options.progress(static_cast<int64_t>(i), static_cast<int64_t>(layers.size()), layers[i].info.name);
    if (entry.outcome != Outcome::kQuantized) continue;
    const auto found = given.find(layers[i].info.name);
    weights[i] = pool.quantize(layers[i], *entry.config, found == given.end() ? nullptr : &found->second);
    entry.bytes_after = pool.weight(weights[i]).bytes();
  }
  std::vector<std::string> targets;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (report.layers[i].outcome != Outcome::kQuantized) continue;
    const PlacedWeight placed = pool.place(module, weights[i], *report.layers[i].config);
    for (const LayerUse& use : layers[i].uses) rewrite_use(graph, use, placed);
    targets.push_back(stored_name(layers[i]));
  }
  remove_unused_weights(module, targets);
  for (size_t i = 0; i < layers.size(); ++i) {
    if (report.layers[i].outcome != Outcome::kQuantized) continue;
    report.layers[i].reason = describe_other_uses(graph, stored_name(layers[i]));
  }
  lint_or_throw(graph, fmt::format("{} after quantization", module.name));
  note_ties(layers, weights, report.layers);
  report.left_alone = left_alone();
  report.bytes_after = bytes_of_tensors(*module.tensors());
  if (options.progress)
    options.progress(static_cast<int64_t>(layers.size()), static_cast<int64_t>(layers.size()), "");
  return report;
}

}  // namespace

int64_t bytes_of_tensors(const TensorMap& tensors) {
  std::set<std::tuple<const void*, int64_t, size_t>> seen;
  int64_t sum = 0;
  for (const auto& [name, tensor] : tensors) {
    const void* memory = tensor.has_storage()
                             ? static_cast<const void*>(tensor.storage().unsafeGetStorageImpl())
                             : static_cast<const void*>(tensor.unsafeGetTensorImpl());
    const int64_t offset = tensor.has_storage() ? tensor.storage_offset() : 0;
    if (seen.emplace(memory, offset, tensor.nbytes()).second) sum += static_cast<int64_t>(tensor.nbytes());
  }
  return sum;
}

QuantizeReport quantize_keeping_levels(GraphModule& module, Int4Activations activations,
                                       const QuantConfig& rest, const QuantizeOptions& options) {
  constexpr int kGroup = 32;
  const QuantConfig config = Int4WeightOnlyConfig{kGroup, /*symmetric=*/false, activations};
  GivenWeights given;
  module.mutable_graph();
  for (const GraphLayer& layer : find_layers(module)) {
    if (layer.info.kind != "linear" || layer.uses.empty() || layer.dtype != at::kFloat) continue;
    const auto parts = try_levels(layer.matrix.to(at::kFloat).contiguous(), kGroup);
    if (!parts) continue;
    given.emplace(layer.info.name, GivenWeight{config,
                                               {{"weight", pack_bits(parts->q, 4)},
                                                {"scale", parts->scale},
                                                {"zero_point", parts->zero_point}}});
  }
  return quantize_in_place(module, rest, options, given);
}

QuantizeReport quantize_(GraphModule& module, const QuantConfig& config, const QuantizeOptions& options) {
  try {
    if (!options.dry_run) return quantize_in_place(module, config, options);
    return quantize_in_place(*module.clone(), config, options);
  } catch (const Error& error) {
    if (module.name.empty()) throw;
    throw error.with_context(module.name);
  }
}

}  // namespace halftone
