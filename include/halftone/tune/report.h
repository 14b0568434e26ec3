// The report of a tuning: every candidate, with measurements and verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/tune/measure.h"
#include "halftone/tune/samples.h"

namespace halftone {

/// kChosen: valid, and taken by the strategy. kDropped: measured, but wrong, slower than a baseline or past
/// a limit. kFailed: it threw, crashed or took too long. kNotTried: the strategy had decided before, or time
/// ran out.
enum class Verdict { kChosen, kValid, kDropped, kFailed, kNotTried };
HALFTONE_API std::string_view to_string(Verdict verdict);  ///< "chosen", "not tried", …

/// Time of one call at one shape, in milliseconds. One estimator: the median over the rounds of the ratio to
/// eager in the same round (measure.h). Every other number follows from it, so that no two can contradict
/// each other; only p10 and p90 are of the times as they were.
struct ShapeTime {
  double median = 0;  ///< eager's median times to_eager
  double p10 = 0;
  double p90 = 0;
  double low = 0;                ///< of the median's interval (95 %)
  double high = 0;               ///< infinite if there were fewer than six rounds: then there is no verdict
  int runs = 0;                  ///< undisturbed rounds
  double to_eager = 0;           ///< this time divided by eager's; 0: not known
  double to_fp32 = 0;            ///< to_eager divided by that of Halftone's fp32; 0: not known
  Interval eager_interval = {};  ///< of to_eager (95 %); 0 to 0: not known
  Interval fp32_interval = {};   ///< of to_fp32
};

/// Against eager, over all held-out samples and outputs. A floating-point output counts by the cosine of all
/// its elements, one of integers by the share of those that are equal.
struct Accuracy {
  double min_cosine = 0;
  double mean_cosine = 0;
  double relative_error = 0;  ///< the largest of |got - expected| / |expected|, norms of whole outputs
  int64_t nans = 0;  ///< elements that are NaN or infinite in one of the two, and not the same in the other
  std::optional<double> metric;  ///< the user's, the least over the samples
};

struct CandidateReport {
  std::string name;                   ///< "int8dq-7bit"
  std::string backend;                ///< "QuantBackend(quantization_config=…)"
  std::string key;                    ///< of the backend: type and hash of the config
  bool is_eager = false;              ///< the first baseline
  bool is_fp32 = false;               ///< the second one: the halftone backend without a change of precision
  std::vector<ShapeTime> times;       ///< one for each shape; empty: not timed
  double latency_ms = 0;              ///< the score; 0: not timed. See strategies in tune.h
  double throughput = 0;              ///< the score: items of the batch, or calls, per second
  std::optional<Accuracy> accuracy;   ///< nothing: it never ran
  int64_t bytes = 0;                  ///< of its tensors, shared ones once
  std::optional<int64_t> peak_bytes;  ///< what building it and one call added to the resident memory at most
  double compile_ms = 0;              ///< conversion and compilation
  Verdict verdict = Verdict::kNotTried;
  std::string reason;   ///< why it was dropped, failed or not tried; of the chosen one: why it
  std::string stopped;  ///< why measuring it ended before the others'; empty: it did not
};

struct HALFTONE_API TuneReport {
  std::string model;
  std::string model_hash;  ///< SHA-256 of graph and tensors
  std::string cpu;         ///< "AMD EPYC …"
  std::string isa;         ///< "avx2"
  int threads = 0;
  std::string version;
  std::string strategy;
  double min_cosine = 0;
  std::string metric;  ///< the name of the user's; empty: none
  std::vector<SampleShape> shapes;
  std::vector<SampleRange> ranges;
  int held_out = 0;   ///< samples that validation ran
  int synthetic = 0;  ///< those of them that were made up
  std::vector<CandidateReport> candidates;
  std::string chosen;  ///< a candidate's name
  bool won = false;    ///< false: nothing beat the baselines, and the fastest of them is taken
  bool met = true;  ///< false: not even a baseline meets the strategy (a budget); one is taken all the same
  double seconds = 0;              ///< that tuning took
  std::string measured_at;         ///< UTC, "2026-01-31T12:00:00Z"
  int rounds = 0;                  ///< undisturbed ones, of all shapes
  int disturbed = 0;               ///< rounds that other programs disturbed, and that were dropped
  bool watched = false;            ///< false: other programs were not looked for (measure.h)
  bool from_cache = false;         ///< the measurements are those of measured_at
  std::vector<std::string> notes;  ///< notes for the user, one sentence each

  const CandidateReport* find(std::string_view name) const;  ///< or nullptr
  /// A table of at most 100 columns, the reasons, the ranges and the notes.
  std::string to_text() const;
  std::string to_json() const;
  /// What to_json() gave; kCorruptFile with the place for anything else.
  static TuneReport from_json(std::string_view json);
};

}  // namespace halftone
