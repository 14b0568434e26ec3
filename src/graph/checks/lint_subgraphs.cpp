#include "graph/checks/lint_subgraphs.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "graph/checks/schema_check.h"

namespace halftone {
namespace {

// Graphs that are being linted, outermost first: a graph that holds itself would never end.
thread_local std::vector<const Graph*> open_graphs;

class OpenGraph {
 public:
  explicit OpenGraph(const Graph& graph) { open_graphs.push_back(&graph); }
  ~OpenGraph() { open_graphs.pop_back(); }
  OpenGraph(const OpenGraph&) = delete;
  OpenGraph& operator=(const OpenGraph&) = delete;
};

const Graph* subgraph_at(const Node& node, size_t index) {
  const auto* held = node.input(index).get_if<std::shared_ptr<Graph>>();
  return held ? held->get() : nullptr;
}

// The operands that a subgraph gets, and the number of values it gives, where something is known of them.
struct Expected {
  size_t index = 0;  // which operand of the node is the subgraph
  size_t inputs = 0;
  std::optional<size_t> outputs;
  size_t min_outputs = 0;
};

class SubgraphCheck {
 public:
  explicit SubgraphCheck(const Node& node) : node_(node) {}

  std::vector<std::string> run() {
    const size_t results = node_.outputs().size();
    const size_t operands = node_.inputs().size();
    if (node_.is("builtin::cond") && operands == 4) {
      const auto passed = list_size(3);
      check({1, passed, results});
      check({2, passed, results});
    } else if (node_.is("builtin::while_loop") && operands == 4) {
      const size_t carried = list_size(2);
      const size_t passed = carried + list_size(3);
      check({0, passed, size_t{1}});
      check({1, passed, carried});
      if (results != carried) problem("carries {} values but gives {}", carried, results);
    } else if (node_.is("builtin::map") && operands == 3) {
      const size_t mapped = list_size(1);
      if (mapped == 0) problem("maps over nothing");
      check({0, mapped + list_size(2), results});
    } else if (node_.is("builtin::scan") && operands == 4) {
      const size_t carried = list_size(1);
      const size_t scanned = list_size(2);
      if (scanned == 0) problem("scans over nothing");
      check({0, carried + scanned + list_size(3), results, carried});
    } else {
      check_none(node_);
    }
    return std::move(problems_);
  }

 private:
  template <typename... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  size_t list_size(size_t index) {
    const auto* list = node_.input(index).list();
    if (list != nullptr) return list->size();
    problem("needs a list as operand {}, not {}", index, describe(node_.input(index)));
    return 0;
  }

  void check(const Expected& expected) {
    const Graph* graph = subgraph_at(node_, expected.index);
    if (graph == nullptr)
      return problem("needs a subgraph as operand {}, not {}", expected.index,
                     describe(node_.input(expected.index)));
    if (graph->inputs().size() != expected.inputs) {
      problem("subgraph {} takes {} inputs but gets {} operands", expected.index, graph->inputs().size(),
              expected.inputs);
    }
    const size_t outputs = graph->outputs().size();
    if (expected.outputs && outputs != *expected.outputs) {
      problem("subgraph {} gives {} outputs, not {}", expected.index, outputs, *expected.outputs);
    }
    if (outputs < expected.min_outputs) {
      problem("subgraph {} gives {} outputs but {} values are carried", expected.index, outputs,
              expected.min_outputs);
    }
    check_contents(*graph, expected.index);
  }

  void check_contents(const Graph& graph, size_t index) {
    if (std::find(open_graphs.begin(), open_graphs.end(), &graph) != open_graphs.end() ||
        &graph == &node_.graph()) {
      return problem("subgraph {} holds itself", index);
    }
    for (const GraphInput& input : graph.inputs()) {
      if (input.value != nullptr && input.kind != InputKind::kUser) {
        problem("subgraph {}: input %{} is a {}, but subgraphs get operands only", index, input.value->name(),
                to_string(input.kind));
      }
    }
    for (const GraphOutput& output : graph.outputs()) {
      if (output.kind != OutputKind::kUser) {
        problem("subgraph {}: a {} output, but subgraphs give values only", index, to_string(output.kind));
      }
    }
    const OpenGraph open(node_.graph());
    for (const std::string& finding : lint(graph)) problem("subgraph {}: {}", index, finding);
  }

  void check_none(const Node& node) {
    for (const NamedArgument& input : node.inputs()) {
      // Operators' own schemas refuse subgraphs, so only built-ins are left to name.
      if (node.op() == nullptr && holds_subgraph(input.value)) problem("takes no subgraph");
    }
  }

  static bool holds_subgraph(const Argument& argument) {
    if (argument.get_if<std::shared_ptr<Graph>>() != nullptr) return true;
    const auto* list = argument.list();
    return list != nullptr && std::any_of(list->begin(), list->end(), holds_subgraph);
  }

  const Node& node_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> subgraph_problems(const Node& node) {
  return SubgraphCheck(node).run();
}

}  // namespace halftone
