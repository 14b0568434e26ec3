#include "capture/pt2_graph.h"

#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/errors.h"
#include "capture/autocast.h"
#include "capture/higher_order.h"
#include "capture/sympy.h"
#include "graph/operators/operators.h"

namespace halftone {
namespace {

constexpr std::string_view kOperatorPrefix = "torch.ops.";

constexpr std::array kSymbolicTargets = {
    std::pair{std::string_view("_operator.and_"), std::string_view("sym::and")},
    std::pair{std::string_view("_operator.or_"), std::string_view("sym::or")},
    std::pair{std::string_view("torch._sym_sqrt"), std::string_view("sym::sqrt")},
    std::pair{std::string_view("torch._sym_log2"), std::string_view("sym::log2")},
};

/// The last entry of "key,path,type;key,path,type": the innermost module.
Source innermost_module(std::string_view stack) {
  if (const size_t last = stack.rfind(';'); last != std::string_view::npos) stack.remove_prefix(last + 1);
  const size_t first_comma = stack.find(',');
  const size_t last_comma = stack.rfind(',');
  if (first_comma == std::string_view::npos || last_comma == first_comma) return {};
  std::string_view path = stack.substr(first_comma + 1, last_comma - first_comma - 1);
  if (path.starts_with("_empty_nn_module_stack")) return {};
  // Subgraphs of strict exports know the model under another name.
  constexpr std::string_view kRoot = "_export_root";
  if (path == kRoot) return {};
  if (path.starts_with(kRoot) && path[kRoot.size()] == '.') path.remove_prefix(kRoot.size() + 1);
  // The second call of one module is "layer@1"; the layer is the same.
  if (const size_t at = path.rfind('@'); at != std::string_view::npos) path = path.substr(0, at);
  return {std::string(path), std::string(stack.substr(last_comma + 1))};
}

ValueType type_of_tag(const Pt2Context& context, const JsonCursor& cursor, std::string_view tag) {
  if (tag == "as_tensor") return ValueType::kTensor;
  if (tag == "as_sym_int") return ValueType::kInt;
  if (tag == "as_sym_float") return ValueType::kFloat;
  if (tag == "as_sym_bool") return ValueType::kBool;
  if (tag == "as_custom_obj") {
    fail(ErrorCode::kUnsupported, "{}: custom object \"{}\"", cursor.path(),
         cursor.at(tag).at("name").get_string());
  }
  refuse_tag(context, cursor, tag);
}

std::string name_in(const JsonCursor& value, ValueType type) {
  return type == ValueType::kTensor ? value.at("name").get_string() : value.at("as_name").get_string();
}

constexpr const char* table_of(ValueType type) {
  switch (type) {
    case ValueType::kInt:
      return "sym_int_values";
    case ValueType::kFloat:
      return "sym_float_values";
    case ValueType::kBool:
      return "sym_bool_values";
    default:
      return "tensor_values";
  }
}

}  // namespace

std::string graph_target(std::string_view target) {
  for (const auto& [python, ours] : kSymbolicTargets) {
    if (target == python) return std::string(ours);
  }
  for (const std::string_view prefix : {"_operator.", "math.", "torch.sym_"}) {
    if (!target.starts_with(prefix)) continue;
    std::string ours = "sym::" + std::string(target.substr(prefix.size()));
    return try_builtin(ours) ? ours : std::string();
  }
  if (!target.starts_with(kOperatorPrefix)) return {};
  target.remove_prefix(kOperatorPrefix.size());
  const size_t name = target.find('.');
  if (name == std::string_view::npos) return {};
  std::string_view rest = target.substr(name + 1);
  if (rest.ends_with(".default")) rest.remove_suffix(std::string_view(".default").size());
  return std::string(target.substr(0, name)) + "::" + std::string(rest);
}

std::string node_name(const JsonCursor& node) {
  return node.has("name") && node.at("name").raw().is_string() ? node.at("name").get_string() : std::string();
}

GraphReader::GraphReader(Pt2Context& context, const JsonCursor& source, Graph& target,
                         GraphSurroundings surroundings)
    : context_(context), graph_json_(source), graph_(target), surroundings_(std::move(surroundings)) {
  require_known_keys(context, source,
                     {"inputs", "outputs", "nodes", "tensor_values", "sym_int_values", "sym_bool_values",
                      "is_single_tensor_return", "custom_obj_values", "sym_float_values"});
  for (const char* list : {"inputs", "outputs", "nodes"}) {
    if (!source.at(list).raw().is_array()) source.at(list).fail_here("expected an array");
  }
}

size_t GraphReader::input_count() const {
  return graph_json_.at("inputs").size();
}

std::string GraphReader::input_name(size_t index) const {
  const JsonCursor input = graph_json_.at("inputs").at(index);
  const auto [tag, value] = read_union(input);
  for (const std::string_view constant : {"as_none", "as_int", "as_float", "as_string", "as_bool"}) {
    if (tag == constant) return {};
  }
  return name_in(value, type_of_tag(context_, input, tag));
}

Value* GraphReader::add_input(size_t index, InputKind kind, std::string target) {
  const JsonCursor input = graph_json_.at("inputs").at(index);
  std::string name;
  const int unknown_before = context_.unknown_sizes;
  OutputSpec spec = output_spec(input, name);
  if (name.empty()) input.fail_here("a constant where a value is needed");
  if (context_.unknown_sizes != unknown_before) {
    context_.notes.push_back(
        fmt::format("input \"{}\" has a size that could not be read; it is not checked", name));
  }
  Value* value = graph_.add_input(std::move(spec), kind, std::move(target));
  define(name, value, input);
  return value;
}

void GraphReader::bind_input(size_t index, Argument value) {
  const std::string name = input_name(index);
  if (!name.empty()) define(name, std::move(value), graph_json_.at("inputs").at(index));
}

void GraphReader::define(const std::string& name, Argument value, const JsonCursor& place) {
  if (!is_python_name(name)) place.fail_here(fmt::format("\"{}\" is no name of a value", name));
  if (!scope_.emplace(name, std::move(value)).second)
    place.fail_here(fmt::format("value \"{}\" is defined twice", name));
}

const Argument* GraphReader::try_lookup(const std::string& name) const {
  const auto found = scope_.find(name);
  return found == scope_.end() ? nullptr : &found->second;
}

Argument GraphReader::lookup(const std::string& name, const JsonCursor& place) const {
  if (const Argument* value = try_lookup(name)) return *value;
  place.fail_here(fmt::format("value \"{}\" is not defined before it is used", name));
}

JsonCursor GraphReader::table_entry(const char* table, const std::string& name,
                                    const JsonCursor& place) const {
  if (!graph_json_.has(table))
    place.fail_here(fmt::format("value \"{}\" needs {}, which is missing", name, table));
  const JsonCursor entries = graph_json_.at(table);
  if (!entries.has(name)) place.fail_here(fmt::format("value \"{}\" has no entry in {}", name, table));
  return entries.at(name);
}

OutputSpec GraphReader::output_spec(const JsonCursor& output, std::string& name) {
  const auto [tag, value] = read_union(output);
  OutputSpec spec;
  if (tag == "as_none") {
    spec.type = ValueType::kNone;
    return spec;
  }
  if (tag == "as_tensors") {
    spec.type = ValueType::kList;
    return spec;
  }
  spec.type = type_of_tag(context_, output, tag);
  name = name_in(value, spec.type);
  spec.name = name;
  const JsonCursor entry = table_entry(table_of(spec.type), name, output);
  if (spec.type == ValueType::kTensor) {
    spec.meta = read_tensor_meta(context_, entry);
  } else {
    spec.expression = try_read_symbolic(context_, entry);
    if (spec.type == ValueType::kFloat) spec.expression.reset();  // SymExpr knows integers only
  }
  return spec;
}

Source node_source(const JsonCursor& node, const Source& outer) {
  const JsonCursor metadata = node.at("metadata");
  if (!metadata.has("nn_module_stack")) return outer;
  Source source = innermost_module(metadata.at("nn_module_stack").get_string());
  if (source.layer.empty() && source.module_type.empty()) return outer;
  return source;
}

ArgumentReader GraphReader::arguments(const Source& source) const {
  return {context_, [this](const std::string& name, const JsonCursor& place) { return lookup(name, place); },
          [this, source](const JsonCursor& graph) { return read_subgraph(graph, source); }};
}

std::vector<NamedArgument> GraphReader::read_inputs(const JsonCursor& node, bool named) const {
  const JsonCursor inputs = node.at("inputs");
  if (!inputs.raw().is_array()) inputs.fail_here("expected an array");
  const ArgumentReader reader = arguments(node_source(node, surroundings_.source));
  std::vector<NamedArgument> result;
  std::set<std::string> seen;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const JsonCursor input = inputs.at(i);
    require_known_keys(context_, input, {"name", "arg", "kind"});
    std::string name = input.at("name").get_string();
    if (named && !seen.insert(name).second)
      input.fail_here(fmt::format("argument \"{}\" is given twice", name));
    result.push_back({named ? std::move(name) : std::string(), reader.read(input.at("arg"))});
  }
  return result;
}

void GraphReader::read_nodes() {
  const JsonCursor nodes = graph_json_.at("nodes");
  for (size_t i = 0; i < nodes.size(); ++i) read_node(nodes.at(i));
}

void GraphReader::read_node(const JsonCursor& node) {
  require_known_keys(context_, node,
                     {"target", "inputs", "outputs", "metadata", "is_hop_single_tensor_return", "name"});
  if (!node.at("outputs").raw().is_array()) node.at("outputs").fail_here("expected an array");
  const std::string target = node.at("target").get_string();
  const Source source = node_source(node, surroundings_.source);
  if (is_higher_order(target)) {
    HigherOrderReader(*this, node, target, source).read();
  } else {
    read_operator(node, graph_target(target), source);
  }
}

void GraphReader::read_operator(const JsonCursor& node, const std::string& target, const Source& source) {
  const bool builtin = try_builtin(target) != nullptr;
  std::vector<NamedArgument> inputs = read_inputs(node, !builtin);
  const JsonCursor outputs = node.at("outputs");
  std::vector<OutputSpec> specs;
  std::vector<std::string> names(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    specs.push_back(output_spec(outputs.at(i), names[i]));
    if (!names[i].empty()) continue;
    const char* suffix = specs.back().type == ValueType::kList ? "list" : "none";
    if (is_python_name(node_name(node))) specs.back().name = fmt::format("{}_{}", node_name(node), suffix);
  }
  if (surroundings_.autocast) {
    const std::string problem = insert_autocast(graph_, *surroundings_.autocast, target, inputs, specs,
                                                source, context_.plain_autocast_dtypes);
    if (!problem.empty()) context_.unsupported.push_back({node_name(node), target, source.layer, problem});
  }
  Node* made = graph_.append(target, std::move(inputs), std::move(specs), source);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (made->output(i)->type() == ValueType::kList)
      define_list(outputs.at(i).at("as_tensors"), made->output(i), source);
    if (!names[i].empty()) define(names[i], made->output(i), outputs.at(i));
  }
}

void GraphReader::define_list(const JsonCursor& output, Value* list, const Source& source) {
  if (!output.raw().is_array()) output.fail_here("expected an array");
  if (output.size() == 0) return;
  std::vector<OutputSpec> specs;
  std::vector<std::string> names;
  for (size_t i = 0; i < output.size(); ++i) {
    const JsonCursor item = output.at(i);
    names.push_back(item.at("name").get_string());
    specs.push_back({names.back(), ValueType::kTensor,
                     read_tensor_meta(context_, table_entry("tensor_values", names.back(), item))});
  }
  const Node* unpack = graph_.append("builtin::unpack", {{"", list}}, std::move(specs), source);
  for (size_t i = 0; i < names.size(); ++i) define(names[i], unpack->output(i), output.at(i));
}

std::vector<Argument> GraphReader::read_outputs() const {
  const JsonCursor outputs = graph_json_.at("outputs");
  const ArgumentReader reader = arguments({});
  std::vector<Argument> values;
  for (size_t i = 0; i < outputs.size(); ++i) values.push_back(reader.read(outputs.at(i)));
  return values;
}

std::shared_ptr<Graph> GraphReader::read_subgraph(const JsonCursor& graph, const Source& source) const {
  auto result = std::make_shared<Graph>();
  GraphReader reader(context_, graph, *result, {source, surroundings_.autocast});
  for (size_t i = 0; i < reader.input_count(); ++i) {
    const std::string name = reader.input_name(i);
    if (name.empty()) graph.at("inputs").at(i).fail_here("a constant as input of a subgraph");
    reader.add_input(i, InputKind::kUser, name);
  }
  reader.read_nodes();
  std::vector<Argument> outputs = reader.read_outputs();
  std::vector<GraphOutput> kinds(outputs.size());
  result->set_outputs(std::move(outputs), std::move(kinds));
  return result;
}

}  // namespace halftone
