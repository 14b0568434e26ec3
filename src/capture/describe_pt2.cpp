#include "capture/describe_pt2.h"

#include <map>
#include <nlohmann/json.hpp>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "capture/pt2_archive.h"
#include "capture/pt2_graph.h"
#include "capture/signature.h"
#include "capture/supported.h"
#include "graph/ir/longest_name.h"

namespace halftone {
namespace {

void check_schema_version(Pt2Context& context, const JsonCursor& program) {
  const JsonCursor version = program.at("schema_version");
  const int64_t major = version.at("major").get_int();
  context.schema_minor = version.at("minor").get_int();
  if (major != kKnownSchemaMajor || context.schema_minor < 0) {
    fail(ErrorCode::kUnsupported,
         "{}: schema version {}.{}; this program knows {}.0 to {}.{}, which torch 2.13 to 2.15 write",
         context.file, major, context.schema_minor, kKnownSchemaMajor, kKnownSchemaMajor, kKnownSchemaMinor);
  }
}

/// The signature names the inputs; a graph without nodes holds them.
void describe_inputs(Pt2Context& context, const JsonCursor& graph_module, Pt2Description& result) {
  Graph inputs;
  GraphReader reader(context, graph_module.at("graph"), inputs, {});
  read_input_specs(context, graph_module.at("signature"), reader, inputs);
  for (const GraphInput& input : inputs.inputs()) {
    auto& list = input.kind == InputKind::kUser ? result.inputs : result.tensors;
    list.push_back({input.target, input.value->meta()});
  }
}

void describe_outputs(Pt2Context& context, const JsonCursor& graph, Pt2Description& result) {
  const JsonCursor outputs = graph.at("outputs");
  if (!outputs.raw().is_array()) outputs.fail_here("expected an array");
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto [tag, value] = read_union(outputs.at(i));
    if (tag != "as_tensor") {
      result.outputs.push_back({fmt::format("result {}", i), std::nullopt});
      continue;
    }
    const std::string name = value.at("name").get_string();
    result.outputs.push_back({name, read_tensor_meta(context, graph.at("tensor_values").at(name))});
  }
}

void describe_operators(const JsonCursor& graph, Pt2Description& result) {
  const JsonCursor nodes = graph.at("nodes");
  std::map<std::pair<std::string, std::string>, size_t> seen;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::string python = nodes.at(i).at("target").get_string();
    const std::string ours = graph_target(python);
    const std::string layer = node_source(nodes.at(i), {}).layer;
    const auto [found, is_new] =
        seen.try_emplace({layer, ours.empty() ? python : ours}, result.operators.size());
    if (is_new) result.operators.push_back({layer, found->first.second, 0});
    ++result.operators[found->second].count;
  }
}

/// As for graphs that are loaded: names are displayed, and real ones are shorter.
void require_short_names(const Pt2Description& result, const std::string& path) {
  const auto check = [&](const char* what, const std::string& name) {
    if (name.size() > kLongestName)
      fail(ErrorCode::kInvalidArgument, "{}: the name of {} has {} bytes, and {} are allowed: {}…", path,
           what, name.size(), kLongestName, quote_text(name.substr(0, 20)));
  };
  for (const auto* list : {&result.inputs, &result.outputs, &result.tensors}) {
    for (const auto& tensor : *list) check("a tensor", tensor.name);
  }
  for (const auto& each : result.operators) {
    check("a layer", each.layer);
    check("an operator", each.target);
  }
  for (const auto& node : result.refused) check("a node", node.name);
}

}  // namespace

JsonCursor open_program(Pt2Context& context, const JsonCursor& program) {
  check_schema_version(context, program);
  require_known_keys(context, program,
                     {"graph_module", "opset_version", "range_constraints", "schema_version", "verifiers",
                      "torch_version", "guards_code"});
  const JsonCursor graph_module = program.at("graph_module");
  require_known_keys(context, graph_module,
                     {"graph", "signature", "module_call_graph", "metadata", "treespec_namedtuple_fields"});
  return graph_module;
}

Pt2Description describe(const std::string& path) {
  const Pt2Archive archive(path, {});
  Pt2Context context;
  context.file = path;
  const nlohmann::json document = archive.json_member(archive.model_path());
  const JsonCursor program(document, archive.place(archive.model_path()) + ": $");
  const JsonCursor graph_module = open_program(context, program);
  const JsonCursor graph = graph_module.at("graph");
  collect_unsupported(context, graph);
  Pt2Description result;
  for (const UnsupportedNode& node : context.unsupported)
    result.refused.push_back({node.name, node.target, node.layer, node.reason});
  describe_inputs(context, graph_module, result);
  describe_outputs(context, graph, result);
  describe_operators(graph, result);
  require_short_names(result, path);
  return result;
}

}  // namespace halftone
