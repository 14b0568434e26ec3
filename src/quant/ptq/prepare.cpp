// prepare(): fuses a copy, matches patterns, decides which are quantized, and places observers.
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "graph/functionalize.h"
#include "graph/mutation.h"
#include "quant/ptq/canonical_linear.h"
#include "quant/ptq/constants.h"
#include "quant/ptq/decide.h"
#include "quant/ptq/fuse.h"
#include "quant/ptq/op_names.h"
#include "quant/ptq/plan.h"

namespace halftone {
namespace ptq {
namespace {

/// Runs the model once: what is wrong with the example shows before anything is decided, and dtypes are known
/// also if the graph does not say them.
void run_example(PtqPlan& plan, const std::vector<c10::IValue>& example) {
  const auto note = [&](const Value& value, const c10::IValue& held) {
    if (held.isTensor() && held.toTensor().scalar_type() == at::kFloat) plan.floats.insert(value.name());
  };
  const auto tensors = plan.module->tensors();
  size_t user = 0;
  for (const GraphInput& input : plan.module->graph().inputs()) {
    if (input.kind == InputKind::kUser) {
      if (user < example.size()) note(*input.value, example[user]);
      ++user;
    } else if (const auto found = tensors->find(input.target); found != tensors->end()) {
      note(*input.value, found->second);
    }
  }
  plan.session = std::make_unique<Session>(plan.module);
  plan.session->set_node_hook([&](const Node& node, const std::vector<c10::IValue>& outputs, double) {
    for (size_t i = 0; i < outputs.size() && i < node.outputs().size(); ++i)
      note(*node.output(i), outputs[i]);
  });
  plan.session->run(example);
  plan.session->reset();
  plan.session->set_node_hook({});
}

/// What functionalize() had to leave: a copy of such a value would miss a write, or be one too many.
void find_written_values(PtqPlan& plan) {
  for (const auto& node : plan.module->graph().nodes()) {
    if (node->op() == nullptr) continue;
    for (const NamedArgument& input : node->inputs()) {
      const auto index = node->op()->schema().argumentIndexWithName(input.name);
      const c10::AliasInfo* alias =
          index ? node->op()->schema().arguments()[static_cast<size_t>(*index)].alias_info() : nullptr;
      if (alias == nullptr || !alias->isWrite() || input.value.value() == nullptr) continue;
      plan.written.insert(input.value.value()->name());
      plan.written.insert(node->output()->name());
    }
  }
}

MatchedPattern describe_match(const PatternMatch& match) {
  MatchedPattern info;
  info.pattern = match.config->pattern().to_text();
  info.layer = match.root->layer;
  for (const Unit* unit : match.units) {
    for (const Node* node : unit->nodes) info.nodes.push_back(node->output()->name());
  }
  return info;
}

/// Why the match stays float, or "". Sets what the plan needs to know of it.
std::string decide_match(const PtqPlan& plan, PlannedMatch& planned, const std::vector<std::string>& written,
                         const std::unordered_map<const Unit*, QConfigMapping::Value>& qconfigs) {
  const PatternMatch& match = planned.match;
  for (const Unit* unit : match.units) {
    if (!qconfigs.at(unit)) return "its qconfig says so";
  }
  planned.qconfig = qconfigs.at(match.last());
  const Node& root = *match.root->root;
  const bool weighted = has_quantizable_weight(root);
  if (match.config->root_module() && !weighted) return "weights of such layers are not quantized here";
  std::string reason = reason_against(*match.config, *planned.qconfig, weighted);
  if (!reason.empty()) return reason;
  const ConfigDType dtype = planned.qconfig->activation.dtype;
  if (dtype != ConfigDType::kFloat32 && !is_quantized_dtype(dtype))
    return fmt::format("activations of {} are not made here", to_string(dtype));
  planned.quantizes_weight = weighted && planned.qconfig->weight.dtype != ConfigDType::kFloat32;
  if (planned.quantizes_weight && !is_quantized_dtype(planned.qconfig->weight.dtype))
    return fmt::format("weights of {} are not made here", to_string(planned.qconfig->weight.dtype));
  if (planned.quantizes_weight && !constant_operand(*plan.module, root, "weight", written).defined())
    return "its weight is computed, not stored";
  if (dtype == ConfigDType::kFloat32) return planned.quantizes_weight ? "" : "its qconfig quantizes nothing";
  std::vector<Value*> inputs = match.inputs();
  inputs.push_back(match.last()->output());
  for (const Value* value : inputs) {
    if (plan.written.contains(value->name())) return "a value of it is written in place";
  }
  inputs.pop_back();
  const bool floats = std::any_of(inputs.begin(), inputs.end(),
                                  [&](const Value* value) { return plan.floats.contains(value->name()); });
  if (!floats || !plan.floats.contains(match.last()->output()->name()))
    return "it is not about float32 tensors";
  return {};
}

void check_patterns(const BackendConfig& config, const std::vector<BackendPatternConfig>& configs) {
  for (size_t i = 0; i < configs.size(); ++i) {
    for (const PatternNode& node : configs[i].pattern().nodes())
      check_operator_name(node.op,
                          fmt::format("backend config \"{}\", configs[{}].pattern", config.name(), i));
  }
}

/// Nothing is quantized silently.
void require_something(const PtqPlan& plan, const BackendConfig& config) {
  if (plan.matches.empty())
    fail(ErrorCode::kInvalidArgument,
         "no pattern of the backend config \"{}\" matches any of the {} operations", config.name(),
         plan.units->units().size());
  const bool some = std::any_of(plan.matches.begin(), plan.matches.end(),
                                [](const PlannedMatch& match) { return match.info.quantized; });
  if (some) return;
  const MatchedPattern& first = plan.matches.front().info;
  fail(ErrorCode::kInvalidArgument, "none of the {} matched patterns is quantized; {} in layer \"{}\": {}",
       plan.matches.size(), first.pattern, first.layer, first.reason);
}

std::unique_ptr<PtqPlan> make_plan(const GraphModule& module, const QConfigMapping& mapping,
                                   const std::vector<c10::IValue>& example, const BackendConfig& config) {
  auto plan = std::make_unique<PtqPlan>();
  plan->configs = config.configs();
  check_patterns(config, plan->configs);
  plan->module = module.clone();
  functionalize(plan->module->mutable_graph());
  make_linears(plan->module->mutable_graph());
  plan->units = std::make_unique<UnitGraph>(plan->module->mutable_graph());
  plan->folded = fuse_units(*plan->module, *plan->units, config);
  lint_or_throw(plan->module->graph(), "prepare");
  find_written_values(*plan);
  run_example(*plan, example);
  const auto qconfigs = qconfigs_of(*plan->units, mapping);
  const auto written = mutated_tensor_names(plan->module->graph());
  for (PatternMatch& match : find_matches(*plan->units, in_order_of_matching(plan->configs))) {
    PlannedMatch planned{std::move(match), {}, {}, false};
    planned.info = describe_match(planned.match);
    planned.info.reason = decide_match(*plan, planned, written, qconfigs);
    planned.info.quantized = planned.info.reason.empty();
    plan->matches.push_back(std::move(planned));
  }
  place_observers(*plan);
  require_something(*plan, config);
  return plan;
}

}  // namespace
}  // namespace ptq

PreparedModel prepare(const GraphModule& module, const QConfigMapping& mapping,
                      const std::vector<c10::IValue>& example_inputs, const BackendConfig& config) {
  try {
    return PreparedModel(ptq::make_plan(module, mapping, example_inputs, config));
  } catch (const Error& error) {
    if (module.name.empty()) throw;
    throw error.with_context(module.name);
  }
}

}  // namespace halftone
