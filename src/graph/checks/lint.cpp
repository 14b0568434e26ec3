// lint(): every way in which a graph can be broken.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <unordered_map>

#include "base/errors.h"
#include "base/pointer_map.h"
#include "graph/checks/lint_subgraphs.h"
#include "graph/checks/schema_check.h"
#include "graph/ir/longest_name.h"
#include "halftone/graph/graph.h"

namespace halftone {
namespace {

std::string name_of(const Node& node) {
  if (node.is("return")) return "return";
  if (node.outputs().empty()) return node.target();
  return fmt::format("{} (%{})", node.target(), node.output(0)->name());
}

class Linter {
 public:
  explicit Linter(const Graph& graph) : graph_(graph) {}

  std::vector<std::string> run() {
    check_names();
    if (!findings_.empty()) return std::move(findings_);  // what follows would repeat them
    number_definitions();
    check_inputs();
    size_t number = 0;
    for (const auto& node : graph_.nodes()) check_node(*node, ++number);
    check_operands(graph_.return_node(), number + 1);
    check_cycles();
    check_use_lists();
    check_outputs();
    for (const auto& node : graph_.nodes()) {
      for (std::string& problem : subgraph_problems(*node)) report("{} {}", name_of(*node), problem);
    }
    return std::move(findings_);
  }

 private:
  template <typename... Args>
  void report(fmt::format_string<Args...> format, Args&&... args) {
    findings_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void check_names() {
    for (const GraphInput& input : graph_.inputs()) {
      if (input.value != nullptr) check_name("an input", input.value->name());
      check_name("an input's target", input.target);
    }
    for (const auto& node : graph_.nodes()) {
      for (const Value* output : node->outputs()) check_name("a value", output->name());
      check_name("a layer", node->source().layer);
      check_name("a layer's type", node->source().module_type);
    }
  }

  void check_name(std::string_view whose, std::string_view name) {
    if (name.size() > kLongestName)
      report("the name of {} has {} bytes, and {} are allowed: {}…", whose, name.size(), kLongestName,
             name.substr(0, 40));
  }

  // Inputs are 0, the outputs of the first node 1, and so on; the return node comes last.
  void number_definitions() {
    values_.reserve(graph_.inputs().size() + graph_.nodes().size());
    for (const GraphInput& input : graph_.inputs()) {
      if (input.value != nullptr) define(*input.value, 0);
    }
    size_t number = 0;
    for (const auto& node : graph_.nodes()) {
      ++number;
      for (const Value* output : node->outputs()) define(*output, number);
    }
  }

  void define(const Value& value, size_t number) {
    if (!values_.emplace(&value, definitions_.size()))
      return report("%{} is defined more than once", value.name());
    definitions_.push_back({&value, number});
    // No name stands twice: a graph keeps its values by name. Looking each of them up took a tenth of compile().
    if (&value.graph() != &graph_) report("%{} is defined here but belongs to another graph", value.name());
    check_type(value);
  }

  void check_type(const Value& value) {
    if (value.type() != ValueType::kTensor && value.meta()) {
      report("%{} is no tensor ({}) but has tensor metadata", value.name(), to_string(value.type()));
    }
    if (value.expression() && (value.type() == ValueType::kTensor || value.type() == ValueType::kList)) {
      report("%{} is no number ({}) but has an expression", value.name(), to_string(value.type()));
    }
    if (!value.meta()) return;
    const TensorMeta& meta = *value.meta();
    if (!meta.strides.empty() && meta.strides.size() != meta.sizes.size()) {
      report("%{} has {} sizes but {} strides", value.name(), meta.sizes.size(), meta.strides.size());
    }
    for (const SymExpr& size : meta.sizes) {
      if (size.as_constant().value_or(0) < 0)
        report("%{} has the negative size {}", value.name(), size.constant());
    }
  }

  void check_inputs() {
    // User inputs are called by name; the others share the names of the module's tensors.
    std::set<std::pair<bool, std::string_view>> targets;
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const GraphInput& input = graph_.inputs()[i];
      if (input.value == nullptr) {
        report("input {} has no value", i);
        continue;
      }
      const std::string& name = input.value->name();
      if (input.value->producer() != nullptr || input.value->index() != i) {
        report("input %{} does not know that it is input {}", name, i);
      }
      if (input.target.empty()) {
        report("input %{} ({}) has no target", name, to_string(input.kind));
      } else if (!targets.emplace(input.kind == InputKind::kUser, input.target).second) {
        report("input %{} ({}) has the target \"{}\" of another input", name, to_string(input.kind),
               input.target);
      }
    }
  }

  void check_node(const Node& node, size_t number) {
    if (&node.graph() != &graph_) report("{} belongs to another graph", name_of(node));
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      if (node.output(i)->producer() != &node || node.output(i)->index() != i) {
        report("%{} does not know that it is output {} of {}", node.output(i)->name(), i, node.target());
      }
    }
    check_operands(node, number);
    for (const std::string& problem :
         arity_problems({node.target(), node.op(), node.inputs(), node.outputs().size()})) {
      report("{} {}", name_of(node), problem);
    }
    for (const std::string& problem : kind_problems(node)) report("{}: {}", name_of(node), problem);
  }

  void check_operands(const Node& node, size_t number) {
    for (const NamedArgument& input : node.inputs()) check_operand(node, number, input.value);
  }

  void check_operand(const Node& node, size_t number, const Argument& argument) {
    if (const auto* list = argument.list()) {
      for (const Argument& item : *list) check_operand(node, number, item);
    }
    const auto* held = argument.get_if<Value*>();
    if (held == nullptr) return;
    const Value* value = *held;
    if (value == nullptr) return report("{} has an operand that is no value", name_of(node));
    const size_t* known = values_.find(value);
    if (known == nullptr) return report("{} uses %{} of another graph", name_of(node), value->name());
    uses_.push_back({*known, &node});
    if (definitions_[*known].number >= number) {
      report("{} uses %{} before its definition", name_of(node), value->name());
      out_of_order_ = true;
    }
  }

  // Nodes that can never run because each waits for another. Only if some order is wrong: an ordered graph
  // has no cycle.
  void check_cycles() {
    if (!out_of_order_) return;
    const UsesByValue uses = uses_by_value();
    std::unordered_map<const Node*, size_t> waiting;
    std::vector<const Node*> ready;
    for (const auto& node : graph_.nodes()) {
      size_t count = 0;
      for (const Value* value : node->input_values())
        count += values_.contains(value) && value->producer() != nullptr;
      if (count == 0) ready.push_back(node.get());
      waiting[node.get()] = count;
    }
    while (!ready.empty()) {
      const Node* node = ready.back();
      ready.pop_back();
      waiting.erase(node);
      for (const Value* output : node->outputs()) {
        for (const Node* user : uses.of(values_.at(output))) {
          const auto found = waiting.find(user);
          if (found != waiting.end() && --found->second == 0) ready.push_back(user);
        }
      }
    }
    if (waiting.empty()) return;
    std::string members;
    for (const auto& node : graph_.nodes()) {
      if (waiting.contains(node.get())) (members += members.empty() ? "" : ", ") += name_of(*node);
    }
    report("a cycle, or nodes that depend on one: {}", members);
  }

  /// Which nodes hold a value, one entry for each operand, in their order.
  struct UsesByValue {
    std::vector<size_t> begin;  // of each value, and the end of the last
    std::vector<const Node*> users;
    std::span<const Node* const> of(size_t value) const {
      return std::span(users).subspan(begin[value], begin[value + 1] - begin[value]);
    }
  };

  UsesByValue uses_by_value() const {
    UsesByValue all{std::vector<size_t>(definitions_.size() + 1, 0), std::vector<const Node*>(uses_.size())};
    for (const Use& use : uses_) ++all.begin[use.value + 1];
    std::partial_sum(all.begin.begin(), all.begin.end(), all.begin.begin());
    std::vector<size_t> next = all.begin;
    for (const Use& use : uses_) all.users[next[use.value]++] = use.node;
    return all;
  }

  void check_use_lists() {
    const UsesByValue uses = uses_by_value();
    for (size_t i = 0; i < definitions_.size(); ++i) {
      const Value& value = *definitions_[i].value;
      const std::span<const Node* const> held = uses.of(i);
      // In the same order as long as nothing was replaced.
      if (std::equal(held.begin(), held.end(), value.users().begin(), value.users().end())) continue;
      std::vector<const Node*> listed(value.users().begin(), value.users().end());
      std::vector<const Node*> found(held.begin(), held.end());
      std::sort(listed.begin(), listed.end());
      std::sort(found.begin(), found.end());
      if (listed != found)
        report("%{} lists {} uses, but {} operands hold it", value.name(), listed.size(), found.size());
    }
  }

  void check_outputs() {
    if (graph_.outputs().size() != graph_.return_node().inputs().size()) {
      return report("{} outputs are described, but {} are returned", graph_.outputs().size(),
                    graph_.return_node().inputs().size());
    }
    std::set<std::pair<OutputKind, std::string_view>> targets;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const GraphOutput& output = graph_.outputs()[i];
      if (output.kind == OutputKind::kUser) continue;
      const std::string what = fmt::format("output {} ({})", i, to_string(output.kind));
      const Value* value = graph_.output_value(i).value();
      if (value == nullptr || value->type() != ValueType::kTensor) report("{} is no tensor", what);
      if (output.target.empty()) {
        report("{} has no target", what);
      } else if (!is_mutable_input(output)) {
        report("{} has the target \"{}\", which is no {} of the graph", what, output.target,
               output.kind == OutputKind::kBufferMutation ? "buffer" : "user input");
      } else if (!targets.emplace(output.kind, output.target).second) {
        report("{} has the target \"{}\" of another output", what, output.target);
      }
    }
  }

  // Also constants: the exporter keeps tensors that a module holds without registering them there, and may
  // update them.
  bool is_mutable_input(const GraphOutput& output) const {
    return std::any_of(graph_.inputs().begin(), graph_.inputs().end(), [&](const GraphInput& input) {
      const bool user = input.kind == InputKind::kUser;
      const bool wanted =
          output.kind == OutputKind::kInputMutation ? user : !user && input.kind != InputKind::kParameter;
      return wanted && input.target == output.target;
    });
  }

  struct Definition {
    const Value* value;
    size_t number;
  };
  struct Use {
    size_t value;  // its place in definitions_
    const Node* node;
  };

  const Graph& graph_;
  std::vector<std::string> findings_;
  PointerMap<size_t> values_;  // their places in definitions_
  std::vector<Definition> definitions_;
  std::vector<Use> uses_;
  bool out_of_order_ = false;
};

}  // namespace

std::vector<std::string> lint(const Graph& graph) {
  return Linter(graph).run();
}

void lint_or_throw(const Graph& graph, std::string_view context) {
  const std::vector<std::string> findings = lint(graph);
  if (findings.empty()) return;
  std::string all;
  for (const std::string& finding : findings) (all += all.empty() ? "" : "; ") += finding;
  fail(ErrorCode::kInvalidArgument, "{}: {}", context, all);
}

}  // namespace halftone
