// Records what a model does: one handler for all operators, called by the dispatcher.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <set>
#include <string>
#include <vector>

#include "capture/module/tracing/alias_tracker.h"
#include "capture/module/tracing/graph_recorder.h"
#include "capture/module/tracing/operator_kinds.h"
#include "capture/module/tracing/tracing_key.h"
#include "halftone/autograd/decompositions.h"

namespace halftone {

struct TracerOptions {
  TraceLevel level = TraceLevel::kAboveAutograd;
  /// Operators whose results may become constants although they would differ in the next call.
  std::set<std::string> allow;
  bool keep_random = false;  ///< draws are nodes, which draw anew in each run; else they are refused
  const DecompositionTable* decompositions =
      nullptr;  ///< operators that are recorded as what they are made of
};

/// The model runs for real; each call is recorded in its pure form. Not thread-safe: it belongs to the thread
/// that captures.
class Tracer {
 public:
  Tracer(GraphRecorder& recorder, AliasTracker& aliases, TracerOptions options)
      : recorder_(recorder), aliases_(aliases), options_(std::move(options)) {}

  void handle(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack& stack);

  GraphRecorder& recorder() { return recorder_; }
  TraceLevel level() const { return options_.level; }
  /// To be called when the model has run.
  void finish() { settle_comparisons({}); }
  /// The operator that the model called last, and where: "aten::view in layer \"fc\"".
  std::string last_call() const { return last_target_.empty() ? "" : last_target_ + " in " + place_; }
  /// Whether the model drew random numbers.
  bool drew() const { return drew_; }
  /// Allowed operators that became constants, a line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  using Values = std::vector<c10::IValue>;
  struct Call;
  const Decomposition* try_decomposition(const std::string& target) const;
  bool take_apart(const Call& call, torch::jit::Stack& stack);
  void record(const Call& call, torch::jit::Stack& stack);
  void record_write(const Call& call, torch::jit::Stack& stack);
  void write_through_pure_form(const Call& call, const PureForm& form, torch::jit::Stack& stack);
  void write_through_clone(const Call& call, torch::jit::Stack& stack);
  void copy_into(const at::Tensor& target, const at::Tensor& source);
  void record_geometry(const Call& call, torch::jit::Stack& stack);
  void record_statistics(const Call& call, torch::jit::Stack& stack);
  void record_outputs(const std::string& target, std::vector<NamedArgument> inputs, const Values& operands,
                      const Values& outputs);
  /// Runs the call and tells whether it drew random numbers.
  template <typename Run>
  bool draws(const c10::OperatorHandle& op, const Values& args, const Run& run);
  /// Runs another operator than the model called, and records it.
  Values run_pure(const c10::OperatorHandle& op, const Values& args);
  std::vector<NamedArgument> arguments(const c10::OperatorHandle& op, const Values& args);
  void refuse_unless_allowed(const std::string& target, const char* what);
  bool answer_comparison(const Call& call, torch::jit::Stack& stack);
  void settle_comparisons(const std::vector<NamedArgument>& inputs);
  void make_constants(const Values& outputs);

  GraphRecorder& recorder_;
  AliasTracker& aliases_;
  const TracerOptions options_;
  std::vector<std::string> notes_;
  bool drew_ = false;
  std::string last_target_;
  std::string place_;       ///< of the call that is handled, for messages
  std::string comparison_;  ///< the place of an aten::equal that waits for settle_comparisons()
};

}  // namespace halftone
