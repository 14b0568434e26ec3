// load_pt2(): a .pt2 file as a GraphModule. Everything that cannot be run is collected before the graph is
// built.
#include <nlohmann/json.hpp>
#include <set>

#include "base/errors.h"
#include "capture/describe_pt2.h"
#include "capture/pt2_archive.h"
#include "capture/pt2_graph.h"
#include "capture/sample_inputs.h"
#include "capture/shape_constraints.h"
#include "capture/signature.h"
#include "capture/supported.h"
#include "capture/treespec.h"
#include "graph/aten/torch_errors.h"
#include "graph/checks/check_shapes.h"
#include "halftone/capture/capture.h"

namespace halftone {
namespace {

struct CallDescription {
  CallSpec call;
  std::vector<std::string> argument_names;
};

NamedTupleFields read_named_tuples(const JsonCursor& graph_module) {
  NamedTupleFields fields;
  if (!graph_module.has("treespec_namedtuple_fields")) return fields;
  const JsonCursor types = graph_module.at("treespec_namedtuple_fields");
  for (const std::string& type : types.keys()) {
    const JsonCursor names = types.at(type).at("field_names");
    for (size_t i = 0; i < names.size(); ++i) fields[type].push_back(names.at(i).get_string());
  }
  return fields;
}

CallDescription read_call(const JsonCursor& graph_module) {
  const JsonCursor entries = graph_module.at("module_call_graph");
  for (size_t i = 0; i < entries.size(); ++i) {
    const JsonCursor entry = entries.at(i);
    if (!entry.at("fqn").get_string().empty()) continue;
    const JsonCursor signature = entry.at("signature");
    const NamedTupleFields fields = read_named_tuples(graph_module);
    const auto spec = [&](const char* key) {
      return parse_treespec(signature.at(key).get_string(), signature.at(key).path(), fields);
    };
    CallDescription result{make_call_spec(spec("in_spec"), spec("out_spec"), signature.path()), {}};
    if (signature.has("forward_arg_names") && !signature.at("forward_arg_names").is_null()) {
      const JsonCursor names = signature.at("forward_arg_names");
      for (size_t k = 0; k < names.size(); ++k) result.argument_names.push_back(names.at(k).get_string());
    }
    return result;
  }
  entries.fail_here("no entry describes the call of the model itself");
}

/// The nesting must have as many leaves as the graph has inputs and outputs of the user.
void check_leaves(const Graph& graph, const CallSpec& call, const JsonCursor& place) {
  size_t inputs = 0;
  size_t outputs = 0;
  for (const GraphInput& input : graph.inputs()) inputs += input.kind == InputKind::kUser;
  for (const GraphOutput& output : graph.outputs()) outputs += output.kind == OutputKind::kUser;
  const size_t in_leaves = call.args.leaf_count() + call.kwargs.leaf_count();
  const size_t out_leaves = call.result.leaf_count();
  if (in_leaves != inputs)
    place.fail_here(fmt::format("in_spec has {} leaves, the graph {} inputs", in_leaves, inputs));
  if (out_leaves != outputs)
    place.fail_here(fmt::format("out_spec has {} leaves, the graph {} outputs", out_leaves, outputs));
}

/// The tensors of the graph's inputs, each checked against what the graph says of it.
TensorMap bind_tensors(const Pt2Context& context, const Pt2Archive& archive, const Graph& graph) {
  const TensorMap weights = archive.load_weights(context);
  const TensorMap constants = archive.load_constants(context);
  TensorMap result;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind == InputKind::kUser) continue;
    const bool constant = input.kind == InputKind::kConstant || input.kind == InputKind::kNonPersistentBuffer;
    const TensorMap& from = constant ? constants : weights;
    const auto found = from.find(input.target);
    if (found == from.end()) {
      fail(ErrorCode::kCorruptFile, "{}: the {} \"{}\" is not in the file", archive.file(),
           to_string(input.kind), input.target);
    }
    const TensorMeta& meta = *input.value->meta();
    bool same =
        found->second.scalar_type() == meta.dtype && std::cmp_equal(found->second.dim(), meta.sizes.size());
    for (size_t i = 0; same && i < meta.sizes.size(); ++i) {
      same = meta.sizes[i].as_constant() == found->second.size(static_cast<int64_t>(i));
    }
    if (!same) {
      fail(ErrorCode::kCorruptFile, "{}: the {} \"{}\" has another dtype or shape than the graph says",
           archive.file(), to_string(input.kind), input.target);
    }
    result[input.target] = found->second;
  }
  return result;
}

void check_sound(const Graph& graph, const std::string& file) {
  try {
    lint_or_throw(graph, file);
  } catch (const Error& error) {
    throw Error(ErrorCode::kCorruptFile, error.what());
  }
}

void check_declared_shapes(const GraphModule& module) {
  try {
    check_shapes(module);
  } catch (const Error& error) {
    fail(ErrorCode::kCorruptFile, "{}: {}", module.name, error.what());
  }
}

std::shared_ptr<GraphModule> load(const std::string& path, const OpenOptions& options) {
  const Pt2Archive archive(path, options);
  Pt2Context context;
  context.file = path;
  const nlohmann::json document = archive.json_member(archive.model_path());
  const JsonCursor program(document, archive.place(archive.model_path()) + ": $");
  const JsonCursor graph_module = open_program(context, program);
  collect_unsupported(context, graph_module.at("graph"));
  throw_if_unsupported(path, context.unsupported);

  auto graph = std::make_unique<Graph>();
  GraphReader reader(context, graph_module.at("graph"), *graph, {});
  const JsonCursor signature = graph_module.at("signature");
  read_input_specs(context, signature, reader, *graph);
  reader.read_nodes();
  throw_if_unsupported(path, context.unsupported);
  read_output_specs(context, signature, reader, *graph);
  check_sound(*graph, path);
  require_allowed(*graph, path);
  fill_empty_tensors(*graph);

  CallDescription description = read_call(graph_module);
  check_leaves(*graph, description.call, graph_module.at("module_call_graph"));
  TensorMap tensors = bind_tensors(context, archive, *graph);
  auto sample_inputs = read_sample_inputs(context, archive, description.call);
  auto module =
      std::make_shared<GraphModule>(std::move(graph), std::move(tensors), std::move(description.call));
  module->sample_inputs = std::move(sample_inputs);
  module->name = path;
  read_shape_constraints(context, program, description.argument_names, *module);
  module->notes = std::move(context.notes);
  check_declared_shapes(*module);
  return module;
}

}  // namespace

std::shared_ptr<GraphModule> load_pt2(const std::string& path, const OpenOptions& options) {
  return guarded(
      path, [&] { return load(path, options); }, OwnErrors::kAsTheyAre);
}

Pt2Description describe_pt2(const std::string& path) {
  return guarded(
      path, [&] { return describe(path); }, OwnErrors::kAsTheyAre);
}

}  // namespace halftone
