// The halftone backend: a captured graph, fp32 or quantized, made fast without a compiler on the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

/// The kernels of convolutions in float32 with constant weights.
enum class ConvChoice {
  kHalftone,  ///< our kernels
  kMkldnn,    ///< mkldnn's, that libtorch brings, wherever they can; the plan then runs on ATen's threads
  kFastest,   ///< both are timed, once a problem, while a plan is made; ours unless mkldnn's are clearly
              ///< faster
};

struct CompileOptions {
  std::vector<std::string> disabled_passes;  ///< by name; see compile_passes()
  size_t max_plans = 32;  ///< shapes that are kept ready; the least recently used is dropped
  int threads = 0;        ///< of one run, at most; 0: as many as ATen has (at::set_num_threads)
  ConvChoice convolutions = ConvChoice::kHalftone;
};

/// The kind of multiplication, which decides how fast a step could be.
enum class Arithmetic { kFloat, kInt7, kInt8 };

/// One operation of a compiled model, for a shape.
struct StepReport {
  std::string target;  ///< "halftone::fused_linear"
  std::string layer;
  std::string kernel;      ///< the kernel's name, or "aten"
  int64_t bytes = 0;       ///< of operands and results: what must be moved at least
  int64_t operations = 0;  ///< multiplications and additions of products of matrices; 0: not counted
  Arithmetic arithmetic = Arithmetic::kFloat;
};

struct PlanReport {
  std::vector<StepReport> steps;
  std::vector<std::string> left_to_aten;  ///< what, where, and why
  std::vector<std::string> choices;       ///< ConvChoice: which kernel a convolution got, and why
  size_t arena_bytes = 0;
  int threads = 1;          ///< of a run that has the process to itself
  std::string interpreted;  ///< why the whole graph runs in the interpreter; empty if it does not
};

/// A compiled model. Immutable to its users and thread-safe: any number of threads may run it at once, each
/// with memory of its own. Runs that go on at the same time share the threads between them. Native steps give
/// the same bytes for every number of threads; what ATen runs (PlanReport::left_to_aten) may not.
class HALFTONE_API CompiledGraph : public GraphExecutor {
 public:
  ~CompiledGraph() override;

  /// Flat inputs and outputs, as Session::run. kState if the model has state: that needs a Session.
  std::vector<c10::IValue> run(const std::vector<c10::IValue>& inputs) const;
  /// The same with results written to tensors of the caller, one for each result (undefined if a result is
  /// no tensor). A run on sizes seen before allocates nothing then, but for what is left to ATen. They may
  /// overlap inputs and have any strides: that costs a copy. kInvalidArgument for other dtypes and sizes.
  void run_into(const std::vector<c10::IValue>& inputs, const std::vector<at::Tensor>& outputs) const;
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
  friend std::shared_ptr<const CompiledGraph> compile(std::shared_ptr<const GraphModule>,
                                                      const CompileOptions&);
  struct State;
  explicit CompiledGraph(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Rewrites a copy of the module's graph; the module itself is left alone. Weights are shared, packed ones
/// are made at the first plan.
HALFTONE_API std::shared_ptr<const CompiledGraph> compile(std::shared_ptr<const GraphModule> module,
                                                          const CompileOptions& options = {});

struct PassInfo {
  std::string name;
  std::string what;
};
/// In the order in which they run.
HALFTONE_API std::vector<PassInfo> compile_passes();

}  // namespace halftone
