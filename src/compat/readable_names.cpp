// Steps by what they do and where.
#include "compiler/passes/match.h"
#include "halftone/compat/baseline_compile.h"

namespace halftone {
namespace {

bool gives_quantized_rows(const Node& node, size_t first) {
  for (size_t i = first; i < node.outputs().size(); ++i)
    if (!node.output(i)->users().empty()) return true;
  return false;
}

std::string linear_words(const Node& node) {
  const std::string format = try_text(node, "format").value_or("fp32");
  const std::string activation = try_text(node, "activation").value_or("none");
  std::string words = format == "fp32" ? "linear" : format + " linear";
  if (activation != "none") words += "+" + activation;
  if (!is_absent(node, "residual")) words += "+residual";
  return gives_quantized_rows(node, 1) ? words + "+quantize" : words;
}

std::string norm_words(const Node& node) {
  std::string words = is_absent(node, "residual") ? "" : "add+";
  words += try_text(node, "kind").value_or("layer") + "_norm";
  return gives_quantized_rows(node, 2) ? words + "+quantize" : words;
}

/// The operator's name without library and overload.
std::string plain_words(std::string_view target) {
  const size_t library = target.find("::");
  if (library != std::string_view::npos) target.remove_prefix(library + 2);
  return std::string(target.substr(0, target.find('.')));
}

std::string readable_name(const Node& node) {
  std::string words = node.is("halftone::fused_linear") ? linear_words(node)
                      : node.is("halftone::norm")       ? norm_words(node)
                                                        : plain_words(node.target());
  const std::string& layer = node.source().layer;
  return layer.empty() ? words : words + " " + layer;
}

/// Steps stand in the order of their nodes; nodes that cost nothing have none.
template <typename Steps>
void name_steps(const Graph& graph, Steps& steps) {
  auto node = graph.nodes().begin();
  const auto is_of = [](const Node& candidate, const StepReport& step) {
    return candidate.target() == step.target && candidate.source().layer == step.layer;
  };
  for (StepReport& step : steps) {
    auto found = node;
    while (found != graph.nodes().end() && !is_of(**found, step)) ++found;
    if (found == graph.nodes().end()) continue;  // a report of another graph: its name stays
    step.target = readable_name(**found);
    node = std::next(found);
  }
}

}  // namespace

void use_readable_names(const Graph& graph, PlanReport& report) {
  name_steps(graph, report.steps);
}

void use_readable_names(const Graph& graph, Profile& profile) {
  name_steps(graph, profile.steps);
}

}  // namespace halftone
