// The model of a job: of the suite or from a file, with calls, and as eager runs it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/suite/models.h"
#include "halftone/bench/bench.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

class BenchModel {
 public:
  /// A file that cannot be read is an error of it; a batch that it cannot have is kInvalidArgument.
  explicit BenchModel(const BenchJob& job);

  /// Without gradients: the C++ module itself, or the interpreter.
  c10::IValue eager(size_t call) const;
  /// The captured graph; made at the first call.
  const std::shared_ptr<GraphModule>& graph();

  const std::optional<SuiteModel>& suite() const { return suite_; }
  /// The calls that are compared and timed.
  const std::vector<Sample>& samples() const { return samples_; }
  /// Other ones, for what looks at data before it decides.
  const Samples& calibration() const { return calibration_; }
  int64_t batch() const { return batch_; }
  int64_t weight_bytes() const;

 private:
  void load_file(const BenchJob& job);
  std::optional<SuiteModel> suite_;
  std::shared_ptr<GraphModule> graph_;
  std::unique_ptr<Session> interpreter_;
  std::vector<Sample> samples_;
  Samples calibration_;
  int64_t batch_ = 1;
};

}  // namespace halftone
