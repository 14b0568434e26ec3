#include "bench/run/layers.h"

#include <algorithm>
#include <map>
#include <set>

#include "halftone/compile/profile.h"
#include "tune/accuracy.h"

namespace halftone {
namespace {

using LayerOutputs = std::map<std::string, at::Tensor>;  // by the name of the value

std::string scheme_name_of(const LayerReport& layer) {
  if (!layer.config || layer.outcome == LayerReport::Outcome::kKept) return "fp32";
  return scheme_name(*layer.config);
}

/// "halftone::fused_linear" → "fused_linear"
std::string kind_of_step(const std::string& target) {
  const size_t colons = target.rfind("::");
  return colons == std::string::npos ? target : target.substr(colons + 2);
}

void add_times(BenchRow& row, const InferenceCandidate& candidate) {
  ProfileOptions options;
  options.runs = 10;
  options.measure_limits = false;
  const Profile profile = candidate.compiled()->profile(candidate.inputs(0), options);
  double total = 0;
  for (const ProfiledStep& step : profile.steps) total += step.seconds;
  for (const ProfiledStep& step : profile.steps) {
    const std::string name = step.layer.empty() ? "(the model itself)" : step.layer;
    auto found = std::find_if(row.layers.begin(), row.layers.end(),
                              [&](const BenchLayer& layer) { return layer.layer == name; });
    if (found == row.layers.end()) {
      row.layers.push_back({name, kind_of_step(step.target), "fp32", 0.0, 0.0, {}, {}});
      found = row.layers.end() - 1;
    }
    *found->ms += step.seconds * 1e3;
    *found->share += total > 0 ? step.seconds / total : 0;
  }
}

/// Outputs of the nodes of these layers, the first one of each layer that is a product.
LayerOutputs outputs_of(const std::shared_ptr<const GraphModule>& module,
                        const std::vector<c10::IValue>& inputs, const std::set<std::string>& wanted) {
  LayerOutputs outputs;
  Session session(module);
  session.set_node_hook([&](const Node& node, const std::vector<c10::IValue>& values, double) {
    if (node.outputs().empty() || values.empty() || !values[0].isTensor()) return;
    const std::string& name = node.output()->name();
    if (wanted.contains(name)) outputs[name] = values[0].toTensor().clone();
  });
  session.run(inputs);
  return outputs;
}

/// The last value of each quantized layer in the quantized graph → the layer.
std::map<std::string, std::string> values_of_layers(const GraphModule& quantized,
                                                    const std::set<std::string>& layers) {
  std::map<std::string, std::string> value_of, layer_of;
  for (const auto& node : quantized.graph().nodes()) {
    if (node->outputs().empty() || !node->target().starts_with("halftone::")) continue;
    const std::string& layer = node->source().layer;
    if (layers.contains(layer)) value_of[layer] = node->output()->name();
  }
  for (const auto& [layer, value] : value_of) layer_of.emplace(value, layer);
  return layer_of;
}

std::map<std::string, double> errors_of_layers(BenchModel& model, const InferenceCandidate& candidate,
                                               const std::set<std::string>& quantized) {
  const auto layer_of = values_of_layers(*candidate.module(), quantized);
  std::set<std::string> wanted;
  for (const auto& [value, layer] : layer_of) wanted.insert(value);
  const LayerOutputs expected = outputs_of(model.graph(), candidate.inputs(0), wanted);
  const LayerOutputs found = outputs_of(candidate.module(), candidate.inputs(0), wanted);
  std::map<std::string, double> errors;
  for (const auto& [value, layer] : layer_of) {
    const auto a = expected.find(value), b = found.find(value);
    if (a == expected.end() || b == found.end() || a->second.sizes() != b->second.sizes()) continue;
    AccuracyCount count;
    count.add(a->second, b->second, {});
    errors[layer] = std::max(0.0, 1 - count.result().min_cosine);
  }
  return errors;
}

void add_quantized(BenchRow& row, BenchModel& model, const InferenceCandidate& candidate) {
  std::set<std::string> quantized;
  for (const LayerReport& report : candidate.report().layers)
    if (report.outcome == LayerReport::Outcome::kQuantized) quantized.insert(report.layer.name);
  const auto errors = errors_of_layers(model, candidate, quantized);
  for (const LayerReport& report : candidate.report().layers) {
    auto found = std::find_if(row.layers.begin(), row.layers.end(),
                              [&](const BenchLayer& layer) { return layer.layer == report.layer.name; });
    if (found == row.layers.end()) {  // it runs inside another layer's step
      row.layers.push_back({report.layer.name, {}, {}, {}, {}, {}, {}});
      found = row.layers.end() - 1;
    }
    found->kind = report.layer.kind;
    found->scheme = scheme_name_of(report);
    found->reason = report.reason;
    if (const auto error = errors.find(report.layer.name); error != errors.end())
      found->error = error->second;
  }
}

void add_plan(BenchRow& row, const AutoquantPlan& plan) {
  for (const AutoquantLayer& layer : plan.layers) {
    BenchChoice choice{layer.name, layer.choice, layer.reason, {}};
    for (const AutoquantCandidate& each : layer.candidates)
      choice.candidates.push_back({each.scheme, each.milliseconds, each.error, each.note});
    row.plan.push_back(std::move(choice));
    for (BenchLayer& measured : row.layers)
      if (measured.layer == layer.name) measured.reason = layer.reason;
  }
}

}  // namespace

void describe_layers(BenchRow& row, BenchModel& model, const InferenceCandidate& candidate) {
  if (!candidate.compiled()) return;
  if (candidate.compiled()->report(candidate.inputs(0)).interpreted.empty()) add_times(row, candidate);
  if (!candidate.report().layers.empty()) add_quantized(row, model, candidate);
  if (candidate.plan()) add_plan(row, *candidate.plan());
}

}  // namespace halftone
