// Graphs of the export schema as Graphs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "capture/pt2_arguments.h"
#include "capture/pt2_types.h"
#include "halftone/graph/graph.h"

namespace halftone {

/// What the surroundings of a graph give its nodes.
struct GraphSurroundings {
  Source source;                            ///< for nodes that name no layer of their own
  std::optional<c10::ScalarType> autocast;  ///< the low-precision dtype of the enclosing autocast region
};

/// Reads one graph of the file into a Graph. Names are those of the file; inside inlined subgraphs they have
/// a scope of their own. Whatever is broken throws kCorruptFile with its place; nodes are expected to have
/// passed check_supported().
class GraphReader {
 public:
  GraphReader(Pt2Context& context, const JsonCursor& source, Graph& target, GraphSurroundings surroundings);

  size_t input_count() const;
  /// The name of an input; empty for a constant.
  std::string input_name(size_t index) const;
  /// Adds the input to the graph and to the scope. Not for constants.
  Value* add_input(size_t index, InputKind kind, std::string target);
  /// Lets an input stand for something that is already in the graph.
  void bind_input(size_t index, Argument value);
  /// Makes a name known that the file's graph does not write down (constant inputs have none there).
  void define(const std::string& name, Argument value, const JsonCursor& place);

  void read_nodes();
  std::vector<Argument> read_outputs() const;

  /// What stands for the name; nullptr if it is unknown.
  const Argument* try_lookup(const std::string& name) const;
  Argument lookup(const std::string& name, const JsonCursor& place) const;

 private:
  friend class HigherOrderReader;
  void read_node(const JsonCursor& node);
  void read_operator(const JsonCursor& node, const std::string& target, const Source& source);
  /// The values a node gives, as the file describes them; `names` gets the file's name of each (empty: none).
  OutputSpec output_spec(const JsonCursor& output, std::string& name);
  void define_list(const JsonCursor& output, Value* list, const Source& source);
  std::vector<NamedArgument> read_inputs(const JsonCursor& node, bool named) const;
  std::shared_ptr<Graph> read_subgraph(const JsonCursor& graph, const Source& source) const;
  ArgumentReader arguments(const Source& source) const;
  JsonCursor table_entry(const char* table, const std::string& name, const JsonCursor& place) const;

  Pt2Context& context_;
  JsonCursor graph_json_;
  Graph& graph_;
  GraphSurroundings surroundings_;
  std::unordered_map<std::string, Argument> scope_;
};

/// "torch.ops.aten.add.Tensor" → "aten::add.Tensor", "_operator.mul" → "sym::mul"; empty for what is neither.
std::string graph_target(std::string_view target);

/// The exporter's name of a node; empty if the file does not say.
std::string node_name(const JsonCursor& node);
/// The innermost module of the node's nn_module_stack; `outer` if it has none.
Source node_source(const JsonCursor& node, const Source& outer);

}  // namespace halftone
