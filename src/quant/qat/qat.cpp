// prepare_qat, freeze_observers, convert_qat: everything that can fail comes before the first change.
#include "halftone/quant/qat.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include <map>
#include <regex>
#include <unordered_map>

#include "base/errors.h"
#include "quant/fake_quantize/fake_tensor.h"
#include "quant/module/module_layers.h"
#include "quant/module/quantize_module.h"

namespace halftone {
namespace {

using Outcome = LayerReport::Outcome;
using TensorId = const c10::TensorImpl*;
constexpr const char* kSubmodule = "_fake_quant";

void check_options(const QatOptions& options) {
  if (!(options.averaging_constant > 0 && options.averaging_constant <= 1))
    fail(ErrorCode::kInvalidArgument,
         "QatOptions::averaging_constant is {}; it must be above 0 and at most 1",
         options.averaging_constant);
  if (!options.freeze_after) return;
  if (*options.freeze_after < 0)
    fail(ErrorCode::kInvalidArgument, "QatOptions::freeze_after is {}, which is no number of calls",
         *options.freeze_after);
  if (options.scales == QatScales::kLearned)
    fail(ErrorCode::kInvalidArgument,
         "QatOptions::freeze_after is for ranges that are observed; freeze_observers() stops learned scales");
}

void check_layer(const ModuleLayer& layer, const AffineScheme& scheme, const QatOptions& options) {
  if (layer.weight().is_inference())
    fail(ErrorCode::kUnsupported, "{}: its weight was made in inference mode and cannot be trained",
         layer.info.name);
  if (options.scales == QatScales::kLearned && !scheme.rule.symmetric)
    fail(ErrorCode::kInvalidArgument, "{}: QatScales::kLearned is for symmetric schemes, not for {}",
         layer.info.name, scheme.config.describe());
  const std::string name = layer.parameter + kSubmodule;
  if (layer.module->named_children().contains(name))
    fail(ErrorCode::kInvalidArgument,
         "{}: it has a submodule \"{}\" already, the name of what is to be added", layer.info.name, name);
}

struct Prepared {
  ModuleLayer layer;
  std::shared_ptr<FakeQuantizer> quantizer;
};

void attach(const Prepared& prepared) {
  const ModuleLayer& layer = prepared.layer;
  at::Tensor& weight = *layer.used;
  // A tied layer may have come first.
  if (!is_fake_quantized(weight)) {
    layer.module->register_module(layer.parameter + kSubmodule, prepared.quantizer);
    prepared.quantizer->train(layer.module->is_training());
    attach_fake_quantizer(weight, prepared.quantizer);
  }
  // Someone may have assigned another tensor to the member, which leaves a useless one registered.
  if (layer.entry != nullptr) *layer.entry = weight;
}

/// The prepared layers of a module, and tied ones with them.
std::vector<Prepared> find_prepared(torch::nn::Module& module, const char* call) {
  std::vector<Prepared> found;
  for (ModuleLayer& layer : find_module_layers(module).layers) {
    if (auto quantizer = try_fake_quantizer(layer.weight()))
      found.push_back({std::move(layer), std::move(quantizer)});
  }
  if (found.empty())
    fail(ErrorCode::kInvalidArgument, "{}: no layer of the module is prepared; prepare_qat() comes first",
         call);
  return found;
}

void detach(const Prepared& prepared) {
  detach_fake_quantizer(*prepared.layer.used);
  const std::string name = prepared.layer.parameter + kSubmodule;
  if (prepared.layer.module->named_children().contains(name)) prepared.layer.module->unregister_module(name);
}

std::string exactly(const std::string& name) {
  static const std::regex special(R"([.^$|()\[\]{}*+?\\])");
  return std::regex_replace(name, special, R"(\$&)");
}

/// Puts prepared weights back where the work on them failed.
class RestoreOnError {
 public:
  explicit RestoreOnError(const std::vector<Prepared>& prepared) : prepared_(prepared) {}
  ~RestoreOnError() {
    if (done_) return;
    for (const Prepared& each : prepared_) attach(each);
  }
  void done() { done_ = true; }

 private:
  const std::vector<Prepared>& prepared_;
  bool done_ = false;
};

}  // namespace

QuantizeReport prepare_qat(torch::nn::Module& module, const QuantConfig& config, const QatOptions& options) {
  check_options(options);
  const c10::InferenceMode normal_mode(false);
  QuantizeOptions asked = options.layers;
  asked.dry_run = true;
  QuantizeReport report = quantize_(module, config, asked);
  const at::NoGradGuard no_grad;
  ModuleLayers found = find_module_layers(module);
  std::vector<Prepared> prepared;
  std::unordered_map<TensorId, std::shared_ptr<FakeQuantizer>> known;  // tied layers have one
  for (size_t i = 0; i < report.layers.size(); ++i) {
    const LayerReport& chosen = report.layers[i];
    if (chosen.outcome != Outcome::kQuantized) continue;
    ModuleLayer& layer = found.layers.at(i);
    AffineScheme scheme = affine_scheme(*chosen.config, layer.weight().scalar_type(), layer.info.name);
    check_layer(layer, scheme, options);
    auto& quantizer = known[layer.weight().unsafeGetTensorImpl()];
    if (!quantizer)
      quantizer =
          std::make_shared<FakeQuantizer>(std::move(scheme), options, layer.weight(), layer.info.name);
    prepared.push_back({std::move(layer), quantizer});
  }
  if (options.layers.dry_run) return report;
  for (const Prepared& each : prepared) attach(each);
  return report;
}

void freeze_observers(torch::nn::Module& module) {
  for (const Prepared& each : find_prepared(module, "freeze_observers")) each.quantizer->freeze();
}

QuantizeReport convert_qat(torch::nn::Module& module) {
  const c10::InferenceMode normal_mode(false);
  const std::vector<Prepared> prepared = find_prepared(module, "convert_qat");
  RestoreOnError restore(prepared);
  QuantizeOptions options;
  std::map<std::string, std::shared_ptr<FakeQuantizer>, std::less<>> by_layer;
  for (const Prepared& each : prepared) {
    options.overrides.emplace_back(exactly(each.layer.info.name), each.quantizer->config());
    by_layer.emplace(each.layer.info.name, each.quantizer);
    detach(each);
  }
  QuantizeReport report =
      quantize_module(module, NoQuantConfig{}, options,
                      [&](const at::Tensor& weight, const QuantConfig&, std::string_view layer) {
                        return by_layer.find(layer)->second->quantized(weight);
                      });
  restore.done();
  return report;
}

void remove_qat(torch::nn::Module& module) {
  for (const Prepared& each : find_prepared(module, "remove_qat")) detach(each);
}

}  // namespace halftone
