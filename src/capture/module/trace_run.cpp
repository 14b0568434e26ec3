#include "capture/module/trace_run.h"

#include "base/errors.h"
#include "capture/module/trace.h"
#include "capture/module/tracing/arguments.h"
#include "capture/module/tracing/tracing_scope.h"

namespace halftone {
namespace {

ValueType type_of(const c10::IValue& leaf) {
  if (leaf.isNone()) return ValueType::kNone;
  if (leaf.isInt()) return ValueType::kInt;
  if (leaf.isDouble()) return ValueType::kFloat;
  if (leaf.isBool()) return ValueType::kBool;
  return ValueType::kString;
}

/// Names of the arguments' tensors first, then numbers and the like: each leaf is an input of the graph.
class InputBinder {
 public:
  InputBinder(Graph& graph, GraphRecorder& recorder, AliasTracker& aliases,
              const std::vector<std::string>& names)
      : graph_(graph), recorder_(recorder), aliases_(aliases), names_(names) {}

  void bind(const c10::IValue& leaf) {
    if (is_defined_tensor(leaf)) return aliases_.add_user_input(leaf.toTensor(), next_name());
    const std::string name = fmt::format("fixed{}", fixed_++);
    Argument constant = constant_leaf(leaf);
    const Value* value = recorder_.add_input({.name = name, .type = type_of(leaf)}, name);
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
  GraphRecorder& recorder_;
  AliasTracker& aliases_;
  const std::vector<std::string>& names_;
  size_t tensors_ = 0;
  size_t fixed_ = 0;
};

}  // namespace

bool is_defined_tensor(const c10::IValue& leaf) {
  return leaf.isTensor() && leaf.toTensor().defined();
}

TraceRun::TraceRun(Graph& graph, ModuleTensors names, torch::nn::Module* module, TracerOptions options)
    : graph_(graph),
      names_(std::move(names)),
      recorder_(graph, names_),
      aliases_(recorder_, names_, memory_),
      tracer_(recorder_, aliases_, std::move(options)),
      module_(module) {}

TraceRun::~TraceRun() {
  memory_.restore();
  module_.restore();
  if (tracer_.drew()) module_.restore_random_state();
}

void TraceRun::bind_inputs(const std::vector<c10::IValue>& leaves, const std::vector<std::string>& names) {
  InputBinder binder(graph_, recorder_, aliases_, names);
  for (const c10::IValue& leaf : leaves) binder.bind(leaf);
  binder.finish();
}

void TraceRun::run(const std::function<void()>& model) {
  const auto place = [&] { return tracer_.last_call().empty() ? "its beginning" : tracer_.last_call(); };
  try {
    const TracingScope tracing(tracer_);
    model();
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    fail(ErrorCode::kInvalidArgument, "the model fails at {}: {}", place(), error.what_without_backtrace());
  } catch (const std::exception& error) {
    fail(ErrorCode::kInvalidArgument, "the model fails after {}: {}", place(), error.what());
  }
  tracer_.finish();
}

void TraceRun::set_outputs(const std::vector<c10::IValue>& results, std::vector<std::string>& notes) {
  std::vector<Argument> values;
  std::vector<GraphOutput> kinds;
  for (const c10::IValue& leaf : results) {
    values.push_back(is_defined_tensor(leaf) ? Argument(aliases_.value_of(leaf.toTensor()))
                                             : constant_leaf(leaf));
    kinds.emplace_back();
  }
  for (const AliasTracker::Mutation& mutation : aliases_.mutations()) {
    const GraphInput& input = graph_.inputs()[mutation.input];
    const bool user = input.kind == InputKind::kUser;
    values.emplace_back(mutation.value);
    kinds.push_back({user ? OutputKind::kInputMutation : OutputKind::kBufferMutation, input.target});
    // A parameter that the model itself writes is state, as a buffer is.
    if (input.kind == InputKind::kParameter)
      graph_.set_input_target(mutation.input, InputKind::kBuffer, input.target);
    if (input.kind == InputKind::kConstant) {
      notes.push_back(fmt::format(
          "the model writes to a tensor that it did not register; sessions keep it as \"{}\"", input.target));
    }
  }
  graph_.set_outputs(std::move(values), std::move(kinds));
}

}  // namespace halftone
