// Higher-order operators of a .pt2 graph: control flow becomes built-ins with subgraphs, wrappers are
// inlined.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/pt2_graph.h"

namespace halftone {

bool is_higher_order(std::string_view target);
/// cond, while_loop, map_impl, scan, wrap_with_set_grad_enabled, wrap_with_autocast.
bool is_supported_higher_order(std::string_view target);

/// Reads one such node into its reader's graph.
class HigherOrderReader {
 public:
  HigherOrderReader(GraphReader& reader, const JsonCursor& node, std::string target, Source source);
  void read();

 private:
  JsonCursor operand(size_t index) const { return node_.at("inputs").at(index).at("arg"); }
  void require_operands(size_t count) const;
  /// The operand as a list; a single value counts as a list of one.
  Argument::List list_operand(size_t index) const;
  std::shared_ptr<Graph> graph_operand(size_t index) const;
  void check_arity(const Graph& graph, size_t inputs, size_t outputs, std::string_view what) const;
  size_t output_count() const { return node_.at("outputs").size(); }
  void append(std::string_view builtin, std::vector<NamedArgument> inputs);
  void read_cond();
  void read_while_loop();
  void read_map();
  void read_scan();
  /// The graph at `graph_index` with the operands after it, in place of the node.
  void inline_graph(size_t graph_index, GraphSurroundings surroundings);
  void inline_autocast();

  GraphReader& reader_;
  JsonCursor node_;
  std::string target_;
  Source source_;
};

}  // namespace halftone
