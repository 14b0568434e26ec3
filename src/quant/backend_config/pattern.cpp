// Pattern: a graph of operations, from and to both JSON formats.
#include <algorithm>
#include <map>
#include <optional>

#include "base/errors.h"
#include "quant/backend_config/config_json.h"
#include "quant/backend_config/names.h"

namespace halftone {
namespace {

using backend_config::Json;

std::string operation_name(const JsonCursor& place) {
  const std::string name = place.get_string();
  if (const std::string problem = problem_with_operation(name); !problem.empty()) place.fail_here(problem);
  return name;
}

/// Reads the complex format from the result backwards. Nodes come out inputs first, so that equal patterns
/// have equal lists however they were written.
class ComplexReader {
 public:
  size_t read(const JsonCursor& place) {
    if (place.raw().is_string()) return add({operation_name(place), {}});
    if (place.raw().is_array()) return read_list(place);
    if (!place.raw().is_object()) place.fail_here("expected a name, a list or an object");
    return place.has("ref") ? read_reference(place) : read_object(place);
  }
  std::vector<PatternNode> take() { return std::move(nodes_); }

 private:
  size_t add(PatternNode node) {
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
  }

  size_t read_list(const JsonCursor& place) {
    if (place.size() == 0) place.fail_here("an empty pattern");
    PatternNode node{operation_name(place.at(0)), {}};
    for (size_t i = 1; i < place.size(); ++i) node.inputs.push_back(read(place.at(i)));
    return add(std::move(node));
  }

  size_t read_object(const JsonCursor& place) {
    backend_config::expect_keys(place, {"op", "inputs", "id"});
    PatternNode node{operation_name(place.at("op")), {}};
    std::string id;
    if (place.has("id")) {
      id = place.at("id").get_string();
      if (!known_.emplace(id, std::nullopt).second)
        place.at("id").fail_here(fmt::format("two operations have the id \"{}\"", id));
    }
    if (place.has("inputs")) {
      const JsonCursor inputs = place.at("inputs");
      for (size_t i = 0; i < inputs.size(); ++i) node.inputs.push_back(read(inputs.at(i)));
    }
    const size_t index = add(std::move(node));
    if (!id.empty()) known_[id] = index;
    return index;
  }

  size_t read_reference(const JsonCursor& place) {
    backend_config::expect_keys(place, {"ref"});
    const std::string id = place.at("ref").get_string();
    const auto found = known_.find(id);
    if (found == known_.end())
      place.fail_here(fmt::format("no operation before this one has the id \"{}\"", id));
    if (!found->second)
      place.fail_here(fmt::format("\"{}\" reads its own result: the pattern is cyclic", id));
    return *found->second;
  }

  std::vector<PatternNode> nodes_;
  std::map<std::string, std::optional<size_t>> known_;  ///< nothing: its inputs are being read
};

bool is_chain(const std::vector<PatternNode>& nodes) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool linked = i == 0 ? nodes[i].inputs.empty() : nodes[i].inputs == std::vector<size_t>{i - 1};
    if (!linked || nodes[i].op == kAnything) return false;
  }
  return true;
}

void expect_something(const JsonCursor& place, const std::vector<PatternNode>& nodes) {
  if (nodes.back().op == kAnything) place.fail_here("a pattern's result cannot be anything");
}

/// Writes nodes backwards; those that are read twice get an id at the first place and are referred to later.
class ComplexWriter {
 public:
  explicit ComplexWriter(const std::vector<PatternNode>& nodes) : nodes_(nodes), uses_(nodes.size(), 0) {
    for (const PatternNode& node : nodes) {
      for (const size_t input : node.inputs) ++uses_[input];
    }
  }

  Json write(size_t index) {
    const PatternNode& node = nodes_[index];
    const std::string id = fmt::format("n{}", index);
    if (uses_[index] > 1 && std::find(written_.begin(), written_.end(), index) != written_.end())
      return Json{{"ref", id}};
    if (uses_[index] > 1) {
      written_.push_back(index);
      Json json{{"op", node.op}, {"id", id}};
      if (!node.inputs.empty()) json["inputs"] = inputs_of(node);
      return json;
    }
    if (node.inputs.empty()) return node.op;
    Json json = Json::array({node.op});
    for (Json& input : inputs_of(node)) json.push_back(std::move(input));
    return json;
  }

 private:
  std::vector<Json> inputs_of(const PatternNode& node) {
    std::vector<Json> list;
    for (const size_t input : node.inputs) list.push_back(write(input));
    return list;
  }

  const std::vector<PatternNode>& nodes_;
  std::vector<int> uses_;
  std::vector<size_t> written_;
};

std::string node_text(const std::vector<PatternNode>& nodes, size_t index) {
  std::string text = nodes[index].op;
  if (nodes[index].inputs.empty()) return text;
  std::string inputs;
  for (const size_t input : nodes[index].inputs)
    inputs += (inputs.empty() ? "" : ", ") + node_text(nodes, input);
  return text + "(" + inputs + ")";
}

}  // namespace

namespace backend_config {

Json pattern_json(const Pattern& pattern) {
  if (pattern.is_complex()) return complex_pattern_json(pattern);
  if (pattern.nodes().size() == 1) return pattern.nodes().front().op;
  Json json = Json::array();
  for (const PatternNode& node : pattern.nodes()) json.push_back(node.op);
  return json;
}

Json complex_pattern_json(const Pattern& pattern) {
  return ComplexWriter(pattern.nodes()).write(pattern.nodes().size() - 1);
}

std::vector<PatternNode> read_pattern(const JsonCursor& place) {
  std::vector<PatternNode> nodes;
  if (place.raw().is_string()) {
    nodes.push_back({operation_name(place), {}});
  } else {
    if (!place.raw().is_array() || place.size() == 0)
      place.fail_here("expected a name or a list of names, in the order of execution");
    for (size_t i = 0; i < place.size(); ++i) {
      nodes.push_back({operation_name(place.at(i)), {}});
      if (nodes.back().op == kAnything) place.at(i).fail_here("a sequence has no room for anything");
      if (i > 0) nodes.back().inputs.push_back(i - 1);
    }
  }
  expect_something(place, nodes);
  return nodes;
}

std::vector<PatternNode> read_complex_pattern(const JsonCursor& place) {
  ComplexReader reader;
  reader.read(place);
  std::vector<PatternNode> nodes = reader.take();
  expect_something(place, nodes);
  return nodes;
}

}  // namespace backend_config

Pattern::Pattern(std::string op) {
  const std::string problem =
      op == kAnything ? "a pattern's result cannot be anything" : problem_with_operation(op);
  if (!problem.empty()) fail(ErrorCode::kInvalidArgument, "pattern: {}", problem);
  nodes_.push_back({std::move(op), {}});
}

Pattern Pattern::sequence(const std::vector<std::string>& ops) {
  return from_json(Json(ops).dump());
}

Pattern Pattern::from_json(std::string_view json) {
  const auto document = parse_json(json, "pattern");
  Pattern pattern;
  pattern.nodes_ = backend_config::read_pattern(JsonCursor(document, "pattern"));
  return pattern;
}

Pattern Pattern::from_complex_json(std::string_view json) {
  const auto document = parse_json(json, "pattern");
  Pattern pattern;
  pattern.nodes_ = backend_config::read_complex_pattern(JsonCursor(document, "pattern"));
  pattern.complex_ = !is_chain(pattern.nodes_);
  return pattern;
}

std::string Pattern::to_json() const {
  return backend_config::pattern_json(*this).dump();
}

std::string Pattern::to_complex_json() const {
  return backend_config::complex_pattern_json(*this).dump();
}

std::string Pattern::to_text() const {
  return node_text(nodes_, nodes_.size() - 1);
}

}  // namespace halftone
