// lower(): rewrites a reference graph into int8 operators, one rewrite after the other, and lists what stays
// float.
#include "halftone/ptq/lower.h"

#include <algorithm>
#include <unordered_set>

#include "base/errors.h"
#include "graph/rewrite/run_rewrite.h"
#include "graph/rewrite/unused_inputs.h"
#include "graph/run/mutation.h"
#include "halftone/cli/message.h"
#include "quant/ptq/grouped_text.h"
#include "quant/static_int8/operators.h"
#include "quant/static_int8/rewrites.h"

namespace halftone {
namespace {

using static_int8::LowerContext;
using static_int8::LowerRewrite;

struct NamedRewrite {
  std::string_view name;
  LowerRewrite rewrite;
};

constexpr NamedRewrite kRewrites[] = {{"sink_dequantize", static_int8::rewrite_sink_dequantize},
                                      {"cancel_pairs", static_int8::rewrite_cancel_pairs},
                                      {"products", static_int8::rewrite_products},
                                      {"norm", static_int8::rewrite_norm},
                                      {"binary", static_int8::rewrite_binary},
                                      {"pooling", static_int8::rewrite_pooling},
                                      {"cat", static_int8::rewrite_cat},
                                      {"interpolate", static_int8::rewrite_interpolate},
                                      {"lookup", static_int8::rewrite_lookup},
                                      {"settle_strides", static_int8::rewrite_fix_strides}};

/// What was said about nodes that are gone goes too.
void forget_erased(LowerContext& context) {
  std::unordered_set<const Node*> alive;
  for (const auto& node : context.graph.nodes()) alive.insert(node.get());
  std::erase_if(context.reasons, [&](const auto& entry) { return !alive.contains(entry.first); });
}

/// Float operators that read what was just dequantized, and those behind them whose result is quantized
/// again. What only prepares the model's inputs or its results is not among them.
std::vector<const Node*> nodes_between(const Graph& graph) {
  std::unordered_set<const Value*> dequantized, descended;
  std::vector<const Node*> between;
  for (const auto& node : graph.nodes()) {
    const std::vector<Value*> inputs = node->input_values();
    const auto reads = [&](const auto& set) {
      return std::any_of(inputs.begin(), inputs.end(),
                         [&](const Value* value) { return set.contains(value); });
    };
    if (node->target().starts_with("halftone::dequantize_per_")) {
      dequantized.insert(node->output());
      continue;
    }
    if (node->is("halftone::quantize_per_tensor")) continue;
    if (node->target().starts_with("halftone::int8_")) {
      if (try_flag(*node, "float_output") == true) descended.insert(node->output());
      continue;
    }
    const bool reads_directly = reads(dequantized), reads_later = reads(descended);
    if (!reads_directly && !reads_later) continue;
    bool quantized = false, only_returned = true;
    for (const Value* output : node->outputs()) {
      descended.insert(output);
      for (const Node* user : output->users()) {
        quantized = quantized || user->is("halftone::quantize_per_tensor");
        only_returned = only_returned && user->is("return");
      }
    }
    const bool lays_out_result = node->is("aten::contiguous") && only_returned;
    if (quantized || (reads_directly && !lays_out_result)) between.push_back(node.get());
  }
  return between;
}

LowerReport report_of(const LowerContext& context) {
  LowerReport report;
  for (const auto& node : context.graph.nodes()) {
    if (node->target().starts_with("halftone::int8_")) ++report.operators[node->target()];
  }
  for (const Node* node : nodes_between(context.graph)) {
    const auto reason = context.reasons.find(node);
    report.kept.push_back(
        {node->outputs().empty() ? "" : node->output()->name(), node->target(), node->source().layer,
         reason != context.reasons.end() ? reason->second
                                         : fmt::format("there is no int8 kernel for {}", node->target())});
  }
  return report;
}

/// Inputs that only the reference graph read: scales and zero points of weights. What nothing had read before
/// stays.
void drop_unused_constants(Graph& graph, const Graph& before, TensorMap& tensors) {
  remove_unused_inputs(graph, tensors, {.candidate = [&](const GraphInput& input) {
                         const Value* old_value = before.try_value(input.value->name());
                         return old_value == nullptr || !old_value->users().empty();
                       }});
}

}  // namespace

std::string LowerReport::to_text() const {
  std::string text = "Lowered to int8\n";
  for (const auto& [target, count] : operators) text += fmt::format("{:>5} × {}\n", count, target);
  if (kept.empty()) return text + "nothing stays float between quantize and dequantize\n";
  ptq::Places by_reason;
  for (const KeptInFloat& node : kept)
    by_reason[fmt::format("{} ({})", node.target, node.reason)].push_back(
        ptq::place_name(node.layer, node.node));
  return text + "\nFloat between quantize and dequantize: " + counted(kept.size(), "node") + "\n" +
         ptq::places_table(by_reason);
}

LowerResult lower(const GraphModule& module, const LowerOptions& options) {
  static_int8::register_operators();
  std::unique_ptr<Graph> graph = module.graph().clone();
  TensorMap tensors = *module.tensors();
  TensorMap constants = tensors;
  for (const std::string& name : mutated_tensor_names(*graph)) constants.erase(name);
  LowerContext context{*graph, constants};
  for (const NamedRewrite& each : kRewrites) {
    if (run_rewrite(*graph, each.name, [&] { return each.rewrite(context); })) forget_erased(context);
  }
  LowerResult result;
  result.report = report_of(context);
  if (options.require_all && !result.report.kept.empty())
    fail(ErrorCode::kUnsupported, "{}: not everything has an int8 kernel\n{}", module.name,
         result.report.to_text());
  tensors.insert(constants.begin(), constants.end());
  drop_unused_constants(*graph, module.graph(), tensors);
  result.module = module.with_graph(std::move(graph), std::move(tensors));
  return result;
}

}  // namespace halftone
