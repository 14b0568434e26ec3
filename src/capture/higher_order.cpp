#include "capture/higher_order.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/errors.h"

namespace halftone {
namespace {

constexpr std::string_view kPrefix = "torch.ops.higher_order.";

constexpr std::array<std::string_view, 6> kSupported = {
    "cond", "while_loop", "map_impl", "scan", "wrap_with_set_grad_enabled", "wrap_with_autocast"};

}  // namespace

bool is_higher_order(std::string_view target) {
  return target.starts_with(kPrefix);
}

bool is_supported_higher_order(std::string_view target) {
  if (!is_higher_order(target)) return false;
  target.remove_prefix(kPrefix.size());
  return std::find(kSupported.begin(), kSupported.end(), target) != kSupported.end();
}

HigherOrderReader::HigherOrderReader(GraphReader& reader, const JsonCursor& node, std::string target,
                                     Source source)
    : reader_(reader), node_(node), target_(std::move(target)), source_(std::move(source)) {}

void HigherOrderReader::read() {
  const std::string_view name = std::string_view(target_).substr(kPrefix.size());
  if (name == "cond") return read_cond();
  if (name == "while_loop") return read_while_loop();
  if (name == "map_impl") return read_map();
  if (name == "scan") return read_scan();
  if (name == "wrap_with_set_grad_enabled")
    return operand(0).at("as_bool").get_bool(), inline_graph(1, reader_.surroundings_);
  if (name == "wrap_with_autocast") return inline_autocast();
  fail(ErrorCode::kUnsupported, "{}: {}", node_.path(), target_);
}

void HigherOrderReader::require_operands(size_t count) const {
  const size_t given = node_.at("inputs").size();
  if (given != count)
    node_.fail_here(fmt::format("{} takes {} operands, {} are given", target_, count, given));
}

Argument::List HigherOrderReader::list_operand(size_t index) const {
  Argument argument = reader_.arguments(source_).read(operand(index));
  if (const auto* list = argument.list()) return *list;
  operand(index).fail_here("expected a list of operands");
}

std::shared_ptr<Graph> HigherOrderReader::graph_operand(size_t index) const {
  const auto [tag, value] = read_union(operand(index));
  if (tag != "as_graph") operand(index).fail_here("expected a subgraph");
  return reader_.read_subgraph(value.at("graph"), source_);
}

void HigherOrderReader::check_arity(const Graph& graph, size_t inputs, size_t outputs,
                                    std::string_view what) const {
  if (graph.inputs().size() != inputs || graph.outputs().size() != outputs) {
    node_.fail_here(fmt::format("{} of {} takes {} values and gives {}; it is given {} and should give {}",
                                what, target_, graph.inputs().size(), graph.outputs().size(), inputs,
                                outputs));
  }
}

void HigherOrderReader::append(std::string_view builtin, std::vector<NamedArgument> inputs) {
  const JsonCursor outputs = node_.at("outputs");
  std::vector<OutputSpec> specs;
  std::vector<std::string> names(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    specs.push_back(reader_.output_spec(outputs.at(i), names[i]));
    if (specs.back().type == ValueType::kList) outputs.at(i).fail_here("a list as result of control flow");
  }
  const Node* made = reader_.graph_.append(builtin, std::move(inputs), std::move(specs), source_);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty()) reader_.define(names[i], made->output(i), outputs.at(i));
  }
}

void HigherOrderReader::read_cond() {
  require_operands(4);
  Argument condition = reader_.arguments(source_).read(operand(0));
  auto if_true = graph_operand(1);
  auto if_false = graph_operand(2);
  Argument::List operands = list_operand(3);
  check_arity(*if_true, operands.size(), output_count(), "the true branch");
  check_arity(*if_false, operands.size(), output_count(), "the false branch");
  append("builtin::cond", {{"", std::move(condition)},
                           {"", std::move(if_true)},
                           {"", std::move(if_false)},
                           {"", std::move(operands)}});
}

void HigherOrderReader::read_while_loop() {
  require_operands(4);
  auto condition = graph_operand(0);
  auto body = graph_operand(1);
  Argument::List carried = list_operand(2);
  Argument::List additional = list_operand(3);
  const size_t inputs = carried.size() + additional.size();
  check_arity(*condition, inputs, 1, "the condition");
  check_arity(*body, inputs, carried.size(), "the body");
  if (output_count() != carried.size()) node_.fail_here("a loop gives as many values as it carries");
  append("builtin::while_loop", {{"", std::move(condition)},
                                 {"", std::move(body)},
                                 {"", std::move(carried)},
                                 {"", std::move(additional)}});
}

void HigherOrderReader::read_map() {
  require_operands(3);
  auto body = graph_operand(0);
  Argument::List mapped = list_operand(1);
  Argument::List additional = list_operand(2);
  check_arity(*body, mapped.size() + additional.size(), output_count(), "the body");
  append("builtin::map", {{"", std::move(body)}, {"", std::move(mapped)}, {"", std::move(additional)}});
}

void HigherOrderReader::read_scan() {
  require_operands(4);
  auto body = graph_operand(0);
  Argument::List init = list_operand(1);
  Argument::List scanned = list_operand(2);
  Argument::List additional = list_operand(3);
  check_arity(*body, init.size() + scanned.size() + additional.size(), output_count(), "the body");
  if (output_count() < init.size()) node_.fail_here("a scan gives at least the values it carries");
  append(
      "builtin::scan",
      {{"", std::move(body)}, {"", std::move(init)}, {"", std::move(scanned)}, {"", std::move(additional)}});
}

void HigherOrderReader::inline_graph(size_t graph_index, GraphSurroundings surroundings) {
  const size_t operands = node_.at("inputs").size();
  if (operands <= graph_index) node_.fail_here(fmt::format("{} without its subgraph", target_));
  const auto [tag, value] = read_union(operand(graph_index));
  if (tag != "as_graph") operand(graph_index).fail_here("expected a subgraph");
  surroundings.source = source_;
  GraphReader inner(reader_.context_, value.at("graph"), reader_.graph_, std::move(surroundings));
  const size_t given = operands - graph_index - 1;
  if (inner.input_count() != given) {
    node_.fail_here(
        fmt::format("the subgraph of {} takes {} values, {} are given", target_, inner.input_count(), given));
  }
  const ArgumentReader arguments = reader_.arguments(source_);
  for (size_t i = 0; i < given; ++i) inner.bind_input(i, arguments.read(operand(graph_index + 1 + i)));
  inner.read_nodes();
  const std::vector<Argument> results = inner.read_outputs();
  const JsonCursor outputs = node_.at("outputs");
  if (results.size() != outputs.size()) {
    node_.fail_here(fmt::format("the subgraph of {} gives {} values, {} are expected", target_,
                                results.size(), outputs.size()));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    std::string name;
    reader_.output_spec(outputs.at(i), name);
    if (!name.empty()) reader_.define(name, results[i], outputs.at(i));
  }
}

void HigherOrderReader::inline_autocast() {
  // Operands: device type, dtype or None, enabled, cache_enabled, subgraph, values.
  if (node_.at("inputs").size() < 5) node_.fail_here(fmt::format("{} with too few operands", target_));
  GraphSurroundings surroundings = reader_.surroundings_;
  if (operand(0).at("as_string").get_string() == "cpu") {
    surroundings.autocast.reset();
    if (operand(2).at("as_bool").get_bool()) {
      const auto [tag, value] = read_union(operand(1));
      surroundings.autocast =
          tag == "as_none" ? c10::ScalarType::BFloat16 : read_scalar_type(operand(1).at("as_scalar_type"));
    }
  }
  // Another device's autocast does nothing to CPU tensors.
  inline_graph(4, std::move(surroundings));
}

}  // namespace halftone
