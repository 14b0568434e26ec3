#include "capture/module/trace.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include "base/errors.h"
#include "capture/module/arguments.h"
#include "capture/module/listening.h"
#include "capture/module/snapshots.h"
#include "capture/module/tracing_key.h"

namespace halftone {
namespace {

ValueType type_of(const c10::IValue& leaf) {
  if (leaf.isNone()) return ValueType::kNone;
  if (leaf.isInt()) return ValueType::kInt;
  if (leaf.isDouble()) return ValueType::kFloat;
  if (leaf.isBool()) return ValueType::kBool;
  return ValueType::kString;
}

c10::IValue copy_of(const c10::IValue& leaf) {
  return leaf.isTensor() && leaf.toTensor().defined() ? c10::IValue(leaf.toTensor().detach().clone()) : leaf;
}

bool is_tensor(const c10::IValue& leaf) {
  return leaf.isTensor() && leaf.toTensor().defined();
}

/// Puts back what a run may have changed, however it ends.
class Restorer {
 public:
  Restorer(torch::nn::Module* module, MemorySnapshots& memory, const Tracer& tracer)
      : module_(module), memory_(memory), tracer_(tracer) {}
  ~Restorer() {
    memory_.restore();
    module_.restore();
    if (tracer_.drew()) module_.restore_random_state();
  }
  Restorer(const Restorer&) = delete;
  Restorer& operator=(const Restorer&) = delete;

 private:
  ModuleSnapshot module_;
  MemorySnapshots& memory_;
  const Tracer& tracer_;
};

/// Names of the arguments' tensors first, then numbers and the like: each leaf is an input of the graph.
class InputBinder {
 public:
  InputBinder(Graph& graph, Tape& tape, TensorBook& book, const std::vector<std::string>& names)
      : graph_(graph), tape_(tape), book_(book), names_(names) {}

  void bind(const c10::IValue& leaf) {
    if (is_tensor(leaf)) return book_.add_user_input(leaf.toTensor(), next_name());
    const std::string name = fmt::format("fixed{}", fixed_++);
    Argument constant = constant_leaf(leaf);
    const Value* value = tape_.add_input({.name = name, .type = type_of(leaf)}, name);
    graph_.set_input_fixed(value->index(), std::move(constant));
  }
  void finish() const {
    if (!names_.empty() && names_.size() != tensors_) {
      fail(ErrorCode::kInvalidArgument, "CaptureOptions::input_names has {} names for {} tensors",
           names_.size(), tensors_);
    }
  }

 private:
  std::string next_name() {
    const size_t index = tensors_++;
    if (names_.empty()) return fmt::format("input{}", index);
    return index < names_.size() ? names_[index] : fmt::format("input{}", index);
  }
  Graph& graph_;
  Tape& tape_;
  TensorBook& book_;
  const std::vector<std::string>& names_;
  size_t tensors_ = 0;
  size_t fixed_ = 0;
};

/// User results, then what was written.
void set_outputs(Graph& graph, TensorBook& book, const std::vector<c10::IValue>& results,
                 std::vector<std::string>& notes) {
  std::vector<Argument> values;
  std::vector<GraphOutput> kinds;
  for (const c10::IValue& leaf : results) {
    values.push_back(is_tensor(leaf) ? Argument(book.value_of(leaf.toTensor())) : constant_leaf(leaf));
    kinds.emplace_back();
  }
  for (const TensorBook::Mutation& mutation : book.mutations()) {
    const GraphInput& input = graph.inputs()[mutation.input];
    const bool user = input.kind == InputKind::kUser;
    values.emplace_back(mutation.value);
    kinds.push_back({user ? OutputKind::kInputMutation : OutputKind::kBufferMutation, input.target});
    // A parameter that the model itself writes is state, as a buffer is.
    if (input.kind == InputKind::kParameter)
      graph.set_input_target(mutation.input, InputKind::kBuffer, input.target);
    if (input.kind == InputKind::kConstant) {
      notes.push_back(fmt::format(
          "the model writes to a tensor that it did not register; sessions keep it as \"{}\"", input.target));
    }
  }
  graph.set_outputs(std::move(values), std::move(kinds));
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

c10::IValue run_model(const TraceRequest& request, const std::vector<c10::IValue>& examples,
                      const Tracer& tracer) {
  const auto place = [&] { return tracer.last_call().empty() ? "its beginning" : tracer.last_call(); };
  try {
    return request.forward(examples);
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    fail(ErrorCode::kInvalidArgument, "the model fails at {}: {}", place(), error.what_without_backtrace());
  } catch (const std::exception& error) {
    fail(ErrorCode::kInvalidArgument, "the model fails after {}: {}", place(), error.what());
  }
}

}  // namespace

TreeSpec tree_of(const c10::IValue& value, std::vector<c10::IValue>& leaves) {
  TreeSpec spec;
  const auto add = [&](const c10::IValue& item) { spec.children.push_back(tree_of(item, leaves)); };
  if (value.isTuple()) {
    spec.kind = TreeSpec::Kind::kTuple;
    spec.type_name = "tuple";
    for (const c10::IValue& item : value.toTupleRef().elements()) add(item);
  } else if (value.isGenericDict()) {
    spec.kind = TreeSpec::Kind::kDict;
    spec.type_name = "dict";
    for (const auto& item : value.toGenericDict()) {
      if (!item.key().isString()) fail(ErrorCode::kInvalidArgument, "a dict with keys that are no strings");
      spec.keys.push_back(item.key().toStringRef());
      add(item.value());
    }
  } else if (value.isList()) {
    spec.kind = TreeSpec::Kind::kList;
    spec.type_name = "list";
    const auto list = value.toList();
    for (size_t i = 0; i < list.size(); ++i) add(list.get(i));
  } else {
    leaves.push_back(value);
  }
  return spec;
}

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
  const ModuleTensors names = request.module ? ModuleTensors(*request.module) : ModuleTensors();
  MemorySnapshots memory;
  Tape tape(*result.graph, names);
  TensorBook book(tape, names, memory);
  Tracer tracer(tape, book, request.allow);
  const Restorer restorer(request.module, memory, tracer);

  std::vector<c10::IValue> leaves;
  result.call.args = tree_of(c10::ivalue::Tuple::create(examples), leaves);
  result.call.kwargs.kind = TreeSpec::Kind::kDict;
  InputBinder inputs(*result.graph, tape, book, request.input_names);
  for (const c10::IValue& leaf : leaves) {
    inputs.bind(leaf);
    result.inputs.push_back(copy_of(leaf));
  }
  inputs.finish();

  std::vector<c10::IValue> results;
  {
    const at::NoGradGuard no_grad;
    c10::IValue output;
    {
      const Listening listening(tracer);
      output = run_model(request, examples, tracer);
    }
    tracer.finish();
    result.call.result = tree_of(output, results);
    set_outputs(*result.graph, book, results, result.notes);
    book.check_memory();
  }
  for (const c10::IValue& leaf : results) result.results.push_back(copy_of(leaf));
  result.frozen = !tracer.notes().empty();
  result.notes.insert(result.notes.end(), tracer.notes().begin(), tracer.notes().end());
  tape.attribute_layers();
  result.graph->erase_dead_nodes();
  result.tensors = book.tensors();
  return result;
}

}  // namespace halftone
