// Quantizes as a plan says: everything is checked before the first change.
#include <map>

#include "archive/bytes/terminal_text.h"
#include "base/errors.h"
#include "base/nearest.h"
#include "halftone/graph/graph_module.h"
#include "halftone/quant/weight_format.h"
#include "quant/graph/find_layers.h"
#include "quant/graph/quantize_graph.h"
#include "quant/module/module_layers.h"
#include "tune/autoquant_plan/choices.h"

namespace halftone {
namespace {

/// A layer of the model, as graphs and modules both know it.
struct PlannedTarget {
  LayerInfo info;
  std::string obstacle;
  int64_t bytes = 0;
};

[[noreturn]] void refuse_layer(const std::string& layer, const std::string& why) {
  fail(ErrorCode::kInvalidArgument, "autoquant plan: layer \"{}\": {}", terminal_text(layer), why);
}

void check_target(const PlanChoice& choice, const PlannedTarget& target) {
  const AutoquantLayer& entry = *choice.entry;
  // A plan written by hand may leave the sizes out.
  const bool has_sizes = choice.own && entry.n > 0 && entry.k > 0;
  if (has_sizes && (entry.n != target.info.n || entry.k != target.info.k)) {
    refuse_layer(choice.layer, fmt::format("is planned for {} × {} weights, the model has {} × {}", entry.n,
                                           entry.k, target.info.n, target.info.k));
  }
  const AutoquantScheme& scheme = autoquant_scheme(entry.choice);
  if (!scheme.config) return;
  std::string refusal = target.obstacle;
  if (refusal.empty()) refusal = format_of(*scheme.config)->refuse(target.info.n, target.info.k);
  if (!refusal.empty()) refuse_layer(choice.layer, fmt::format("cannot become {}: {}", scheme.name, refusal));
}

void check_targets(const AutoquantPlan& plan, const std::vector<PlannedTarget>& targets) {
  std::map<std::string_view, const PlannedTarget*> by_name;
  for (const PlannedTarget& target : targets) by_name.emplace(target.info.name, &target);
  for (const PlanChoice& choice : plan_choices(plan)) {
    const auto found = by_name.find(choice.layer);
    if (found != by_name.end()) {
      check_target(choice, *found->second);
      continue;
    }
    std::vector<std::string> names;
    for (const PlannedTarget& target : targets) names.push_back(terminal_text(target.info.name));
    refuse_layer(choice.layer, fmt::format("the model has no such layer{}",
                                           did_you_mean(terminal_text(choice.layer), names)));
  }
}

QuantizeOptions planned_options(const AutoquantPlan& plan) {
  QuantizeOptions options;
  options.overrides = plan.overrides();
  return options;
}

/// What quantize_ would say if it could be asked to do nothing.
QuantizeReport all_kept(const std::vector<PlannedTarget>& targets, int64_t bytes) {
  QuantizeReport report;
  report.bytes_before = report.bytes_after = bytes;
  for (const PlannedTarget& target : targets) {
    LayerReport& entry = report.layers.emplace_back();
    entry.layer = target.info;
    entry.reason = "the plan keeps it";
    entry.bytes_before = entry.bytes_after = target.bytes;
  }
  return report;
}

}  // namespace

QuantizeReport apply_plan(GraphModule& module, const AutoquantPlan& plan) {
  module.mutable_graph();  // find_layers wants the module's own
  std::vector<PlannedTarget> targets;
  for (const GraphLayer& layer : find_layers(module))
    targets.push_back({layer.info, layer.state.obstacle, layer.bytes});
  check_targets(plan, targets);
  if (!plan.quantizes()) return all_kept(targets, bytes_of_tensors(*module.tensors()));
  return quantize_(module, NoQuantConfig{}, planned_options(plan));
}

QuantizeReport apply_plan(torch::nn::Module& module, const AutoquantPlan& plan) {
  const ModuleLayers found = find_module_layers(module);
  std::vector<PlannedTarget> targets;
  for (const ModuleLayer& layer : found.layers)
    targets.push_back({layer.info, layer.obstacle, tensor_bytes(layer.weight())});
  check_targets(plan, targets);
  if (!plan.quantizes()) return all_kept(targets, total_bytes(found.tensors));
  QuantizeOptions options = planned_options(plan);
  // Only quantize_ knows which layers share a weight with something that is kept, and it keeps them without
  // an error: here the plan would be broken silently.
  options.dry_run = true;
  std::map<std::string_view, const AutoquantLayer*> planned;
  const std::vector<PlanChoice> choices = plan_choices(plan);
  for (const PlanChoice& choice : choices) planned.emplace(choice.layer, choice.entry);
  for (const LayerReport& layer : quantize_(module, NoQuantConfig{}, options).layers) {
    const auto entry = planned.find(layer.layer.name);
    if (entry == planned.end() || layer.outcome != LayerReport::Outcome::kKept) continue;
    if (autoquant_scheme(entry->second->choice).config)
      refuse_layer(layer.layer.name,
                   fmt::format("cannot become {}: {}", entry->second->choice, layer.reason));
  }
  options.dry_run = false;
  return quantize_(module, NoQuantConfig{}, options);
}

}  // namespace halftone
