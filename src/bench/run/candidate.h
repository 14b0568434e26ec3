// The candidate of a job in inference: the graph, quantized as the scheme says, compiled as the
// backend does.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/run/bench_model.h"
#include "halftone/compat/baseline_compile.h"
#include "halftone/compile/graph_compiler.h"
#include "halftone/tune/autoquant_plan.h"

namespace halftone {

/// Why the job's scheme would leave every layer as it is; empty: it would not, or there is no scheme.
std::string nothing_to_quantize(const BenchJob& job, const GraphModule& module);

class InferenceCandidate {
 public:
  /// Captures where need be, and quantizes. Not compiled yet.
  InferenceCandidate(const BenchJob& job, BenchModel& model);

  void compile(const BenchJob& job);
  /// Flat results.
  std::vector<c10::IValue> run(size_t call) const;

  const std::shared_ptr<GraphModule>& module() const { return module_; }
  const std::vector<c10::IValue>& inputs(size_t call) const { return inputs_.at(call); }
  /// nullptr: another backend than Halftone's.
  const std::shared_ptr<const BaselineModel>& compiled() const { return compiled_; }
  const QuantizeReport& report() const { return report_; }
  const std::optional<AutoquantPlan>& plan() const { return plan_; }

 private:
  std::shared_ptr<GraphModule> module_;
  std::vector<std::vector<c10::IValue>> inputs_;  ///< flat, one for each call
  QuantizeReport report_;
  std::optional<AutoquantPlan> plan_;
  std::shared_ptr<const BaselineModel> compiled_;
  std::unique_ptr<Session> session_;
  CompiledFunction function_;
};

}  // namespace halftone
