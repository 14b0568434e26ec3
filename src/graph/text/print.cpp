// print_graph(): the text form of graphs.
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include "graph/ir/text_names.h"
#include "halftone/graph/graph.h"

namespace halftone {
namespace {

class GraphPrinter {
 public:
  void print(const Graph& graph, int depth) {
    out_ += "graph(";
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      if (i != 0) out_ += ", ";
      print_input(graph.inputs()[i]);
    }
    out_ += ") {\n";
    for (const auto& node : graph.nodes()) print_node(*node, depth + 1);
    indent(depth + 1);
    out_ += "return";
    for (size_t i = 0; i < graph.return_node().inputs().size(); ++i) {
      out_ += i == 0 ? " " : ", ";
      print_output(graph.outputs().at(i), graph.output_value(i), depth + 1);
    }
    out_ += '\n';
    indent(depth);
    out_ += '}';
  }
  std::string take() { return std::move(out_); }

 private:
  void indent(int depth) { out_.append(static_cast<size_t>(depth) * 2, ' '); }

  void print_definition(const Value& value) {
    append_value_name(out_, value.name());
    out_ += ": ";
  }

  void print_input(const GraphInput& input) {
    print_definition(*input.value);
    out_ += to_string(input.kind);
    out_ += ' ';
    append_quoted(out_, input.target);
    out_ += ' ';
    append_type(out_, *input.value);
    if (input.fixed) {
      out_ += " = ";
      print_argument(*input.fixed, 0);
    }
  }

  void print_output(const GraphOutput& output, const Argument& value, int depth) {
    if (output.kind != OutputKind::kUser || !output.target.empty()) {
      out_ += to_string(output.kind);
      out_ += ' ';
      append_quoted(out_, output.target);
      out_ += ' ';
    }
    print_argument(value, depth);
  }

  void print_node(const Node& node, int depth) {
    indent(depth);
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      if (i != 0) out_ += ", ";
      print_definition(*node.output(i));
      append_type(out_, *node.output(i));
    }
    if (!node.outputs().empty()) out_ += " = ";
    out_ += node.target();
    print_operands(node, depth);
    if (!node.source().layer.empty() || !node.source().module_type.empty()) {
      out_ += "  @ ";
      append_quoted(out_, node.source().layer);
      if (!node.source().module_type.empty()) {
        out_ += ' ';
        append_quoted(out_, node.source().module_type);
      }
    }
    out_ += '\n';
  }

  // Positional as long as the operands follow the schema; then, and for keyword-only ones, by name.
  void print_operands(const Node& node, int depth) {
    bool positional = true;
    out_ += '(';
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const NamedArgument& input = node.inputs()[i];
      if (i != 0) out_ += ", ";
      if (node.op() != nullptr) {
        const auto& arguments = node.op()->schema().arguments();
        positional = positional && i < arguments.size() && !arguments[i].kwarg_only() &&
                     arguments[i].name() == input.name;
      } else {
        positional = input.name.empty();
      }
      if (!positional) {
        out_ += input.name;
        out_ += '=';
      }
      print_argument(input.value, depth);
    }
    out_ += ')';
  }

  void print_argument(const Argument& argument, int depth) {
    std::visit([&](const auto& data) { print_data(data, depth); }, argument.data());
  }

  void print_data(Argument::None, int) { out_ += "None"; }
  void print_data(Value* value, int) { append_value_name(out_, value->name()); }
  void print_data(bool value, int) { out_ += value ? "true" : "false"; }
  void print_data(int64_t value, int) { fmt::format_to(std::back_inserter(out_), "{}", value); }
  void print_data(double value, int) { append_double(out_, value); }
  void print_data(const c10::complex<double>& value, int) {
    out_ += "complex(";
    append_double(out_, value.real());
    out_ += ", ";
    append_double(out_, value.imag());
    out_ += ')';
  }
  void print_data(const std::string& text, int) { append_quoted(out_, text); }
  void print_data(c10::ScalarType dtype, int) { (out_ += "dtype:") += dtype_name(dtype); }
  void print_data(c10::Layout layout, int) { (out_ += "layout:") += layout_name(layout); }
  void print_data(c10::MemoryFormat format, int) { (out_ += "format:") += memory_format_name(format); }
  void print_data(const c10::Device& device, int) { (out_ += "device:") += device.str(); }
  void print_data(const std::shared_ptr<Graph>& graph, int depth) {
    if (graph == nullptr) {
      out_ += "None";  // a broken graph that lint() names; printing it must still work
    } else {
      print(*graph, depth);
    }
  }
  void print_data(const Argument::List& list, int depth) {
    out_ += '[';
    for (size_t i = 0; i < list.size(); ++i) {
      if (i != 0) out_ += ", ";
      print_argument(list[i], depth);
    }
    out_ += ']';
  }

  std::string out_;
};

}  // namespace

std::string print_graph(const Graph& graph) {
  GraphPrinter printer;
  printer.print(graph, 0);
  return printer.take() + "\n";
}

}  // namespace halftone
