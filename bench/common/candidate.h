// Ways to run one model (interpreted or compiled, fp32 or quantized), measured side by side.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "halftone/compile/compile.h"
#include "halftone/graph/graph_module.h"
#include "halftone/quant/config.h"
#include "halftone/tune/measure.h"

namespace halftone::bench {

struct CandidateSpec {
  std::string name;
  QuantConfig config;
  bool compiled = true;  ///< false: the interpreter
};

/// fp32 in the interpreter first: what the others are compared with.
std::vector<CandidateSpec> encoder_candidates();

struct Candidate {
  std::string name;
  std::shared_ptr<GraphModule> module;
  std::shared_ptr<const CompiledGraph> compiled;  ///< nullptr: the interpreter
  double compile_ms = 0;
};

/// Opens the model, quantizes and compiles it.
Candidate make_candidate(const std::string& path, const CandidateSpec& spec);
std::vector<Candidate> make_candidates(const std::string& path, const std::vector<CandidateSpec>& specs);

/// The first result of one call in a new session.
at::Tensor first_result(const Candidate& candidate, const std::vector<c10::IValue>& inputs);

/// Mean over the first dimension of the cosine of what belongs to each entry.
double cosine(const at::Tensor& a, const at::Tensor& b);

double milliseconds(const std::function<void()>& run);

using halftone::quantile;

struct Measurement {
  std::string name;
  double median = 0, p10 = 0, p90 = 0;  ///< ms
  double cosine = 0;                    ///< to the first candidate
};

struct MeasureOptions {
  double seconds = 4;       ///< for all candidates together; six rounds at least
  double min_cosine = 0.9;  ///< below it a time means nothing: std::runtime_error
  std::string only;         ///< a name: the others are run for the answers, not timed
  std::function<void(double share)> progress = nullptr;
};

/// Checks every answer, then lets the candidates take turns, as halftone/tune/measure.h has it. A candidate that
/// throws ends it.
std::vector<Measurement> measure(const std::vector<Candidate>& candidates,
                                 const std::vector<c10::IValue>& inputs, const MeasureOptions& options);

/// Two symbolic sizes become (batch, tokens), in the order in which the inputs name them; values are those of
/// a generator with a fixed seed, integers within the range of the sample inputs' ones.
std::vector<c10::IValue> make_inputs(const GraphModule& module, const std::vector<int64_t>& symbol_values);

}  // namespace halftone::bench
