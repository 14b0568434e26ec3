// quantize_ on C++ modules: decide everything, quantize everything, and only then change the module.
#include "quant/module/quantize_module.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/errors.h"
#include "halftone/quant/quantized_tensor.h"
#include "quant/module/module_layers.h"
#include "quant/select/layer_chooser.h"
#include "quant/select/left_alone.h"

namespace halftone {
namespace {

using Outcome = LayerReport::Outcome;
using TensorId = const c10::TensorImpl*;

TensorId id_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl();
}

/// The user's filter is asked once for each layer, however often the layers are gone through.
QuantizeOptions ask_filter_once(const QuantizeOptions& options) {
  QuantizeOptions result = options;
  if (!options.filter) return result;
  result.filter = [filter = options.filter,
                   answers = std::make_shared<std::map<std::string, bool>>()](const LayerInfo& layer) {
    const auto known = answers->find(layer.name);
    if (known != answers->end()) return known->second;
    return (*answers)[layer.name] = filter(layer);
  };
  return result;
}

std::vector<LayerReport> choose_all(const ModuleLayers& found, LayerChooser& chooser) {
  std::vector<LayerReport> reports;
  for (const ModuleLayer& layer : found.layers) {
    LayerState state{.obstacle = layer.obstacle};
    if (is_quantized_tensor(layer.weight())) state.already = quantized_weight_of(layer.weight()).config;
    reports.push_back(chooser.choose(layer.info, state));
  }
  return reports;
}

/// Layers that share one tensor stay tied: if one of them is kept, or if something else holds the
/// tensor too, the others are kept as well.
void keep_ties(ModuleLayers& found, const std::vector<LayerReport>& reports) {
  std::unordered_map<TensorId, size_t> chosen;       // by weight: the first layer that is to be quantized
  std::unordered_map<TensorId, std::string> holder;  // by weight: a layer that is not
  for (size_t i = 0; i < reports.size(); ++i) {
    const TensorId id = id_of(found.layers[i].weight());
    if (reports[i].outcome == Outcome::kKept) holder.try_emplace(id, reports[i].layer.name);
    if (reports[i].outcome != Outcome::kQuantized) continue;
    const auto [first, is_new] = chosen.try_emplace(id, i);
    if (is_new || *reports[first->second].config == *reports[i].config) continue;
    if (reports[i].layer.kind != reports[first->second].layer.kind) {
      // A table's config knows no activations and so may differ from that of a linear.
      holder.try_emplace(id,
                         fmt::format("{} and {}", reports[first->second].layer.name, reports[i].layer.name));
      continue;
    }
    fail(ErrorCode::kInvalidArgument, "{} and {} share one weight, and cannot become {} and {}",
         reports[first->second].layer.name, reports[i].layer.name, reports[first->second].config->describe(),
         reports[i].config->describe());
  }
  for (size_t i = 0; i < reports.size(); ++i) {
    if (reports[i].outcome != Outcome::kQuantized) continue;
    const auto kept = holder.find(id_of(found.layers[i].weight()));
    if (kept == holder.end()) continue;
    found.layers[i].obstacle =
        fmt::format("its weight is shared ({}), and not all of that becomes the same", kept->second);
  }
}

/// Weights that stay as they are though the caller did not ask for that, each tensor once.
std::vector<UntouchedWeight> untouched_weights(const ModuleLayers& found,
                                               const std::vector<LayerReport>& reports) {
  std::unordered_set<TensorId> seen;
  std::vector<UntouchedWeight> weights;
  for (size_t i = 0; i < reports.size(); ++i) {
    const ModuleLayer& layer = found.layers[i];
    const at::Tensor& weight = layer.weight();
    if (!reports[i].untouched || !weight.is_floating_point() || !seen.insert(id_of(weight)).second) continue;
    weights.push_back({layer.family, layer.owner, tensor_bytes(weight)});
  }
  return weights;
}

using QuantizedWeights = std::unordered_map<TensorId, QuantizedWeight>;

QuantizedWeights quantize_chosen(const ModuleLayers& found, std::vector<LayerReport>& reports,
                                 const QuantizeOptions& options, const MakeQuantizedWeight& make) {
  size_t total = 0;
  for (const LayerReport& report : reports) total += report.outcome == Outcome::kQuantized;
  QuantizedWeights weights;
  std::unordered_map<TensorId, std::string> first;  // by weight: the layer that it is counted with
  size_t done = 0;
  for (size_t i = 0; i < reports.size(); ++i) {
    const at::Tensor& weight = found.layers[i].weight();
    LayerReport& report = reports[i];
    report.bytes_before = report.bytes_after = tensor_bytes(weight);
    if (report.outcome != Outcome::kQuantized) continue;
    auto known = weights.find(id_of(weight));
    if (known == weights.end()) {
      known = weights.emplace(id_of(weight), make(weight, *report.config, report.layer.name)).first;
      first.emplace(id_of(weight), report.layer.name);
    } else {
      report.tied_to = first.at(id_of(weight));
      report.own_tensors = false;
    }
    report.bytes_after = known->second.bytes();
    if (options.progress) {
      options.progress(static_cast<int64_t>(++done), static_cast<int64_t>(total), report.layer.name);
    }
  }
  return weights;
}

int64_t bytes_with(const QuantizedWeights& weights, const std::vector<at::Tensor>& tensors,
                   const std::unordered_set<TensorId>& dropped) {
  std::vector<at::Tensor> others;
  for (const at::Tensor& tensor : tensors) {
    if (!weights.count(id_of(tensor)) && !dropped.count(id_of(tensor))) others.push_back(tensor);
  }
  int64_t sum = total_bytes(others);
  for (const auto& [id, weight] : weights) sum += weight.bytes();
  return sum;
}

/// In place, so that every handle on the tensor sees it and the old storage has no owner left.
void replace(const ModuleLayer& layer, const QuantizedWeights& weights) {
  at::Tensor& weight = *layer.used;
  if (!is_quantized_tensor(weight)) {  // it is where a tied layer came first
    const c10::InferenceMode as_the_weight(weight.is_inference());
    at::Tensor quantized = make_quantized_tensor(weights.at(id_of(weight)), layer.info.name);
    weight.mutable_grad().reset();
    // A backward pass that still waits for the old values must fail, not use the new ones.
    if (!weight.is_inference()) weight.unsafeGetTensorImpl()->bump_version();
    weight.set_data(quantized);
  }
  // Someone may have assigned another tensor to the member, which leaves a useless one registered.
  if (layer.entry) *layer.entry = weight;
}

}  // namespace

QuantizeReport quantize_(torch::nn::Module& module, const QuantConfig& config,
                         const QuantizeOptions& options) {
  return quantize_module(module, config, options, quantize_weight);
}

QuantizeReport quantize_module(torch::nn::Module& module, const QuantConfig& config,
                               const QuantizeOptions& options, const MakeQuantizedWeight& make) {
  // Also inside InferenceMode the parts must be normal tensors: a later training step may have to save them.
  const c10::InferenceMode normal_mode(false);
  const at::NoGradGuard no_grad;
  ModuleLayers found = find_module_layers(module);
  const QuantizeOptions asked = ask_filter_once(options);
  LayerChooser first(config, asked);
  keep_ties(found, choose_all(found, first));
  LayerChooser chooser(config, asked);
  std::vector<LayerReport> reports = choose_all(found, chooser);
  QuantizeReport report;
  report.bytes_before = total_bytes(found.tensors);
  report.left_alone = group_left_alone(untouched_weights(found, reports), report.bytes_before, config);
  chooser.finish(report.left_alone);

  const QuantizedWeights weights = quantize_chosen(found, reports, options, make);
  std::unordered_set<TensorId> dropped;
  for (size_t i = 0; i < reports.size(); ++i) {
    const ModuleLayer& layer = found.layers[i];
    if (reports[i].outcome == Outcome::kQuantized && layer.entry) dropped.insert(id_of(*layer.entry));
  }
  report.bytes_after = bytes_with(weights, found.tensors, dropped);
  report.layers = std::move(reports);
  if (options.dry_run) return report;
  for (size_t i = 0; i < report.layers.size(); ++i) {
    if (report.layers[i].outcome == Outcome::kQuantized) replace(found.layers[i], weights);
  }
  return report;
}

}  // namespace halftone
