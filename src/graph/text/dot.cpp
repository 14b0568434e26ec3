// Graphs for Graphviz.
#include <fmt/format.h>

#include <unordered_map>

#include "graph/ir/text_names.h"
#include "halftone/graph/graph.h"

namespace halftone {
namespace {

constexpr size_t kLongestLabel = 80;

// In quotes, as Graphviz wants them: it knows \" and \n, and takes other backslashes for escapes of its own.
void append_label(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  out += '"';
}

std::string shorten(std::string text) {
  if (text.size() > kLongestLabel) {
    size_t end = kLongestLabel;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
      --end;  // not inside a UTF-8 sequence
    text.resize(end);
    text += "…";
  }
  return text;
}

std::string type_label(const Value& value) {
  std::string text;
  append_value_name(text, value.name());
  text += ": ";
  append_type(text, value);
  return shorten(std::move(text));
}

class DotPrinter {
 public:
  std::string run(const Graph& graph) {
    out_ =
        "digraph halftone {\n  node [shape=box, fontname=\"Helvetica\", fontsize=10];\n  edge "
        "[fontsize=8];\n";
    print_graph_body(graph, 1);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  void indent(int depth) { out_.append(static_cast<size_t>(depth) * 2, ' '); }

  std::string print_box(std::string_view label, std::string_view style, int depth) {
    std::string id = fmt::format("n{}", next_id_++);
    indent(depth);
    out_ += id;
    out_ += " [label=";
    append_label(out_, label);
    if (!style.empty()) (out_ += ", ") += style;
    out_ += "];\n";
    return id;
  }

  void print_edges(const Node& node, const std::string& id, int depth) {
    for (const Value* value : node.input_values()) {
      const auto source = sources_.find(value);
      if (source == sources_.end()) continue;  // a value of another graph, which lint() names
      indent(depth);
      out_ += source->second;
      out_ += " -> ";
      out_ += id;
      out_ += " [label=";
      append_label(out_, type_label(*value));
      out_ += "];\n";
    }
  }

  void print_node(const Node& node, int depth) {
    std::string label = node.target();
    if (!node.source().layer.empty()) label += "\n" + shorten(node.source().layer);
    const std::string id = print_box(label, node.op() ? "" : "style=rounded", depth);
    for (const Value* output : node.outputs()) sources_[output] = id;
    ids_[&node] = id;
    for (const NamedArgument& input : node.inputs()) print_subgraphs(input.value, id, depth);
  }

  void print_subgraphs(const Argument& argument, const std::string& id, int depth) {
    if (const auto* list = argument.list()) {
      for (const Argument& item : *list) print_subgraphs(item, id, depth);
    }
    const auto* graph = argument.get_if<std::shared_ptr<Graph>>();
    if (graph == nullptr || *graph == nullptr) return;
    indent(depth);
    out_ += fmt::format("subgraph cluster_{} {{\n", next_id_++);
    indent(depth + 1);
    out_ += "style=dashed;\n";
    const std::string last = print_graph_body(**graph, depth + 1);
    indent(depth);
    out_ += "}\n";
    indent(depth);
    out_ += fmt::format("{} -> {} [style=dashed];\n", last, id);
  }

  // Returns the id of the return box. Boxes come before edges: in a broken graph a use may stand before its
  // definition.
  std::string print_graph_body(const Graph& graph, int depth) {
    for (const GraphInput& input : graph.inputs()) {
      const std::string label =
          fmt::format("{} {}\n{}", to_string(input.kind), shorten(input.target), type_label(*input.value));
      const bool user = input.kind == InputKind::kUser;
      sources_[input.value] = print_box(
          label, user ? "shape=ellipse" : "shape=ellipse, style=filled, fillcolor=lightgrey", depth);
    }
    for (const auto& node : graph.nodes()) print_node(*node, depth);
    const std::string last = print_box("return", "shape=ellipse", depth);
    for (const auto& node : graph.nodes()) print_edges(*node, ids_[node.get()], depth);
    print_edges(graph.return_node(), last, depth);
    return last;
  }

  std::string out_;
  size_t next_id_ = 0;
  std::unordered_map<const Value*, std::string> sources_;
  std::unordered_map<const Node*, std::string> ids_;
};

}  // namespace

std::string print_dot(const Graph& graph) {
  return DotPrinter().run(graph);
}

}  // namespace halftone
