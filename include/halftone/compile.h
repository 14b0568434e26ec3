// The halftone backend: a captured graph, fp32 or quantized, made fast without a compiler on the machine.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "halftone/graph_module.h"

namespace halftone {

struct CompileOptions {
  std::vector<std::string> disabled_passes;  ///< by name; see compile_passes()
  size_t max_plans = 32;  ///< shapes that are kept ready; the one that was not used for longest makes room
};

/// One operation of a compiled model, for a shape.
struct StepReport {
  std::string target;  ///< "halftone::fused_linear"
  std::string layer;
  std::string kernel;  ///< the kernel's name, or "aten"
};

struct PlanReport {
  std::vector<StepReport> steps;
  std::vector<std::string> left_to_aten;  ///< what, where, and why
  size_t arena_bytes = 0;
  std::string interpreted;  ///< why the whole graph runs in the interpreter; empty where it does not
};

/// A compiled model. Immutable to its users and thread-safe: any number of threads may run it at once, each
/// with memory of its own. Threads: those of ATen (at::set_num_threads) at the time of the call.
class CompiledModel : public GraphExecutor {
 public:
  ~CompiledModel() override;

  /// Flat inputs and outputs, as Session::run. kState where the model has state: that needs a Session.
  std::vector<c10::IValue> run(const std::vector<c10::IValue>& inputs) const;
  /// Plans for these inputs; their data does not matter.
  void warm_up(const std::vector<c10::IValue>& inputs) const;
  PlanReport report(const std::vector<c10::IValue>& inputs) const;
  /// What each pass did, a line each.
  const std::vector<std::string>& log() const;
  size_t plan_count() const;

  // As a session calls it.
  std::vector<c10::IValue> run(const ExecutorCall& call) const override;
  const Graph& graph() const override;

 private:
  friend std::shared_ptr<const CompiledModel> compile(std::shared_ptr<const GraphModule>,
                                                      const CompileOptions&);
  struct State;
  explicit CompiledModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Rewrites a copy of the module's graph; the module itself is left alone. Weights are shared, packed ones
/// are made at the first plan.
std::shared_ptr<const CompiledModel> compile(std::shared_ptr<const GraphModule> module,
                                             const CompileOptions& options = {});

struct PassInfo {
  std::string name;
  std::string what;
};
/// In the order in which they run.
std::vector<PassInfo> compile_passes();

}  // namespace halftone
