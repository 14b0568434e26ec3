#include "capture/module/trace.h"

#include <ATen/core/grad_mode.h>

#include "base/errors.h"
#include "capture/module/own_memory.h"
#include "capture/module/trace_run.h"
#include "capture/module/tracing/arguments.h"

namespace halftone {
namespace {

c10::IValue copy_of(const c10::IValue& leaf) {
  return leaf.isTensor() && leaf.toTensor().defined() ? c10::IValue(leaf.toTensor().detach().clone()) : leaf;
}

c10::IValue rebuild(const c10::IValue& like, const std::vector<c10::IValue>& leaves, size_t& next) {
  if (like.isTuple()) {
    std::vector<c10::IValue> items;
    for (const c10::IValue& item : like.toTupleRef().elements()) items.push_back(rebuild(item, leaves, next));
    return c10::ivalue::Tuple::create(std::move(items));
  }
  if (like.isGenericDict()) {
    const auto old = like.toGenericDict();
    c10::impl::GenericDict dict(old.keyType(), old.valueType());
    for (const auto& item : old) dict.insert(item.key(), rebuild(item.value(), leaves, next));
    return dict;
  }
  if (like.isList()) {
    const auto old = like.toList();
    c10::impl::GenericList list(old.elementType());
    for (size_t i = 0; i < old.size(); ++i) list.push_back(rebuild(old.get(i), leaves, next));
    return list;
  }
  return leaves.at(next++);
}

void check_names(const std::set<std::string>& allow) {
  for (const std::string& name : allow) {
    const size_t dot = name.find('.');
    const c10::OperatorName op(name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1));
    if (!c10::Dispatcher::singleton().findOp(op))
      fail(ErrorCode::kInvalidArgument, "CaptureOptions::allow: there is no operator \"{}\"", name);
  }
}

/// A write to one of two inputs that share memory changes both; the graph has them apart.
void refuse_shared_writes(TraceRun& run, const Graph& graph, const std::vector<c10::IValue>& leaves) {
  for (const AliasTracker::Mutation& write : run.aliases().mutations()) {
    for (size_t i = 0; i < leaves.size() && write.input < leaves.size(); ++i) {
      if (i == write.input || !share_elements(leaves[i], leaves[write.input])) continue;
      fail(ErrorCode::kUnsupported,
           "the model writes to input \"{}\", and input \"{}\" shares its memory in the examples: give each "
           "memory of its own",
           graph.inputs()[write.input].target, graph.inputs()[i].target);
    }
  }
}

}  // namespace

std::vector<c10::IValue> with_leaves(const std::vector<c10::IValue>& like,
                                     const std::vector<c10::IValue>& leaves) {
  size_t next = 0;
  return rebuild(c10::ivalue::Tuple::create(like), leaves, next).toTupleRef().elements().vec();
}

Argument constant_leaf(const c10::IValue& leaf) {
  if (leaf.isTensor()) return {};  // undefined
  if (leaf.isNone() || leaf.isInt() || leaf.isDouble() || leaf.isBool() || leaf.isString())
    return to_argument(leaf, nullptr, nullptr);
  fail(ErrorCode::kUnsupported, "an argument or result of type {}", leaf.tagKind());
}

Trace trace(const TraceRequest& request, const std::vector<c10::IValue>& examples) {
  check_names(request.allow);
  Trace result;
  result.graph = std::make_unique<Graph>();
  TraceRun run(*result.graph, request.module ? ModuleTensors(*request.module) : ModuleTensors(),
               request.module, {.allow = request.allow, .keep_random = request.keep_random});

  FlatArgs given = flatten_args(examples);
  result.call.args = std::move(given.spec);
  result.call.kwargs.kind = TreeSpec::Kind::kDict;
  // One tensor at two places is two inputs: the next call may give two tensors.
  const std::vector<c10::IValue> leaves = with_own_memory(given.leaves, SameTensor::kSeparate);
  const std::vector<c10::IValue> args = with_leaves(examples, leaves);
  run.bind_inputs(leaves, request.input_names);
  for (const c10::IValue& leaf : leaves) result.inputs.push_back(copy_of(leaf));

  std::vector<c10::IValue> results;
  {
    const at::NoGradGuard no_grad;
    c10::IValue output;
    run.run([&] { output = request.forward(args); });
    result.call.result = tree_of(output, results);
    refuse_shared_writes(run, *result.graph, given.leaves);
    run.set_outputs(results, result.notes);
    run.aliases().check_memory();
  }
  for (const c10::IValue& leaf : results) result.results.push_back(copy_of(leaf));
  const std::vector<std::string>& notes = run.tracer().notes();
  result.frozen = !notes.empty();
  result.drew = run.tracer().drew();
  result.notes.insert(result.notes.end(), notes.begin(), notes.end());
  run.recorder().attribute_layers();
  result.graph->erase_dead_nodes();
  result.tensors = run.aliases().tensors();
  return result;
}

}  // namespace halftone
