#include "capture/supported.h"

#include <nlohmann/json.hpp>

#include "capture/higher_order.h"
#include "capture/pt2_arguments.h"
#include "capture/pt2_graph.h"
#include "graph/operators/operators.h"

namespace halftone {
namespace {

/// Namespaces that come with libtorch: a missing operator there is a matter of versions, elsewhere of a
/// missing library.
bool is_torch_namespace(std::string_view target) {
  for (const std::string_view name :
       {"aten::", "prims::", "prim::", "quantized::", "quantized_decomposed::", "torchvision::"}) {
    if (target.starts_with(name)) return name != "torchvision::" && name != "quantized_decomposed::";
  }
  return false;
}

std::string why_unsupported_target(const std::string& target) {
  if (is_higher_order(target)) return is_supported_higher_order(target) ? "" : "higher-order operator";
  const std::string ours = graph_target(target);
  if (ours.empty()) return "not an operator";
  if (try_builtin(ours) || try_operator(ours)) return why_refused_in_files(ours);
  if (ours.starts_with("export::"))
    return "unwraps a tensor subclass, as torchao's quantize_ makes: save exported.run_decompositions(), or "
           "let "
           "Halftone quantize the float model";
  if (is_torch_namespace(ours)) return "this libtorch has no such operator";
  return "unknown operator; if a library registers it, load that with --load-library";
}

class Collector {
 public:
  explicit Collector(Pt2Context& context) : context_(context) {}

  void graph(const JsonCursor& graph, const Source& outer) {
    const JsonCursor nodes = graph.at("nodes");
    if (!nodes.raw().is_array()) nodes.fail_here("expected an array");
    for (size_t i = 0; i < nodes.size(); ++i) node(nodes.at(i), outer);
  }

 private:
  void node(const JsonCursor& node, const Source& outer) {
    const Source source = node_source(node, outer);
    const std::string target = node.at("target").get_string();
    std::string reason = why_unsupported_target(target);
    const JsonCursor inputs = node.at("inputs");
    if (!inputs.raw().is_array()) inputs.fail_here("expected an array");
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto [tag, value] = read_union(inputs.at(i).at("arg"));
      if (tag == "as_graph") graph(value.at("graph"), source);
      if (reason.empty()) reason = why_unsupported_argument(tag);
    }
    if (!reason.empty())
      context_.unsupported.push_back({node_name(node), target, source.layer, std::move(reason)});
  }

  Pt2Context& context_;
};

}  // namespace

void collect_unsupported(Pt2Context& context, const JsonCursor& graph) {
  Collector(context).graph(graph, {});
}

}  // namespace halftone
