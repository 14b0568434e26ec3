// prepare(): fuses a copy, matches patterns, decides which are quantized, and places observers.
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "graph/rewrite/functionalize.h"
#include "graph/run/mutation.h"
#include "halftone/cli/message.h"
#include "quant/ptq/canonical_linear.h"
#include "quant/ptq/check_config.h"
#include "quant/ptq/constants.h"
#include "quant/ptq/decide.h"
#include "quant/ptq/fuse.h"
#include "quant/ptq/op_names.h"
#include "quant/ptq/ptq_state.h"

namespace halftone {
namespace ptq {
namespace {

/// Runs the model once: what is wrong with the example shows before anything is decided, and dtypes are known
/// also if the graph does not say them.
void run_example(PtqState& state, const std::vector<c10::IValue>& example) {
  const auto note = [&](const Value& value, const c10::IValue& held) {
    if (held.isTensor() && held.toTensor().scalar_type() == at::kFloat) state.floats.insert(value.name());
  };
  const auto tensors = state.module->tensors();
  size_t user = 0;
  for (const GraphInput& input : state.module->graph().inputs()) {
    if (input.kind == InputKind::kUser) {
      if (user < example.size()) note(*input.value, example[user]);
      ++user;
    } else if (const auto found = tensors->find(input.target); found != tensors->end()) {
      note(*input.value, found->second);
    }
  }
  state.session = std::make_unique<Session>(state.module);
  state.session->set_node_hook([&](const Node& node, const std::vector<c10::IValue>& outputs, double) {
    for (size_t i = 0; i < outputs.size() && i < node.outputs().size(); ++i)
      note(*node.output(i), outputs[i]);
  });
  state.session->run(example);
  state.session->reset();
  state.session->set_node_hook({});
}

/// What functionalize() had to leave: a copy of such a value would miss a write, or be one too many.
void find_written_values(PtqState& state) {
  for (const auto& node : state.module->graph().nodes()) {
    if (node->op() == nullptr) continue;
    for (const NamedArgument& input : node->inputs()) {
      const auto index = node->op()->schema().argumentIndexWithName(input.name);
      const c10::AliasInfo* alias =
          index ? node->op()->schema().arguments()[static_cast<size_t>(*index)].alias_info() : nullptr;
      if (alias == nullptr || !alias->isWrite() || input.value.value() == nullptr) continue;
      state.written.insert(input.value.value()->name());
      state.written.insert(node->output()->name());
    }
  }
}

MatchedPattern describe_match(const PatternMatch& match) {
  MatchedPattern info;
  info.pattern = match.config->pattern().to_text();
  info.layer = match.root->layer;
  for (const FusedOp* fused_op : match.fused_ops) {
    for (const Node* node : fused_op->nodes) info.nodes.push_back(node->output()->name());
  }
  return info;
}

/// Why the match stays float, or "". Sets what the state needs to know of it.
std::string decide_match(const PtqState& state, PlannedMatch& planned,
                         const std::vector<std::string>& written,
                         const std::unordered_map<const FusedOp*, QConfigMapping::Value>& qconfigs) {
  const PatternMatch& match = planned.match;
  for (const FusedOp* fused_op : match.fused_ops) {
    if (!qconfigs.at(fused_op)) return "its qconfig says so";
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
  if (planned.quantizes_weight && !constant_operand(*state.module, root, "weight", written).defined())
    return "its weight is computed, not stored";
  if (dtype == ConfigDType::kFloat32) return planned.quantizes_weight ? "" : "its qconfig quantizes nothing";
  std::vector<Value*> inputs = match.inputs();
  inputs.push_back(match.last()->output());
  for (const Value* value : inputs) {
    if (state.written.contains(value->name())) return "a value of it is written in place";
  }
  inputs.pop_back();
  const bool floats = std::any_of(inputs.begin(), inputs.end(),
                                  [&](const Value* value) { return state.floats.contains(value->name()); });
  if (!floats || !state.floats.contains(match.last()->output()->name()))
    return "it is not about float32 tensors";
  return {};
}

/// Nothing is quantized silently.
void require_something(const PtqState& state, const BackendConfig& config) {
  if (state.matches.empty())
    fail(ErrorCode::kInvalidArgument,
         "no pattern of the backend config \"{}\" matches any operation of the model, which has {}",
         config.name(), counted(state.fused_ops->fused_ops().size(), "operation"));
  const bool some = std::any_of(state.matches.begin(), state.matches.end(),
                                [](const PlannedMatch& match) { return match.info.quantized; });
  if (some) return;
  const MatchedPattern& first = state.matches.front().info;
  fail(ErrorCode::kInvalidArgument, "none of the {} matched patterns is quantized; {} in layer \"{}\": {}",
       state.matches.size(), first.pattern, first.layer, first.reason);
}

std::unique_ptr<PtqState> make_state(const GraphModule& module, const QConfigMapping& mapping,
                                     const std::vector<c10::IValue>& example, const BackendConfig& config) {
  auto state = std::make_unique<PtqState>();
  state->configs = config.configs();
  check_config(config);
  state->module = module.clone();
  functionalize(state->module->mutable_graph());
  make_linears(state->module->mutable_graph());
  state->fused_ops = std::make_unique<FusedOpGraph>(state->module->mutable_graph());
  state->folded = fuse_ops(*state->module, *state->fused_ops, config);
  lint_or_throw(state->module->graph(), "prepare");
  find_written_values(*state);
  run_example(*state, example);
  const auto qconfigs = qconfigs_of(*state->fused_ops, mapping);
  const auto written = mutated_tensor_names(state->module->graph());
  for (PatternMatch& match : find_matches(*state->fused_ops, in_order_of_matching(state->configs))) {
    PlannedMatch planned{std::move(match), {}, {}, false};
    planned.info = describe_match(planned.match);
    planned.info.reason = decide_match(*state, planned, written, qconfigs);
    planned.info.quantized = planned.info.reason.empty();
    state->matches.push_back(std::move(planned));
  }
  place_observers(*state);
  require_something(*state, config);
  return state;
}

}  // namespace
}  // namespace ptq

PreparedModel prepare(const GraphModule& module, const QConfigMapping& mapping,
                      const std::vector<c10::IValue>& example_inputs, const BackendConfig& config) {
  try {
    return PreparedModel(ptq::make_state(module, mapping, example_inputs, config));
  } catch (const Error& error) {
    if (module.name.empty()) throw;
    throw error.with_context(module.name);
  }
}

}  // namespace halftone
