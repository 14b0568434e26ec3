// A benchmark job, checked and with all defaults filled in.
#pragma once

#include <optional>
#include <string_view>

#include "halftone/bench/bench.h"
#include "halftone/quant/config.h"

namespace halftone {

/// kInvalidArgument, as run_bench() says.
void check_bench_job(const BenchJob& job);

/// A .pt2 or .ht file, by its name or by its content; else a name of bench_models().
bool is_model_file(const std::string& model);

/// What the row is called: the suite's name, or the file's without its folder.
std::string bench_row_name(const std::string& model);

/// A row with nothing but what the job says of it.
BenchRow bench_row_of(const BenchJob& job);

/// Nothing for "noquant" and "fp32". Not for "autoquant".
std::optional<QuantConfig> bench_scheme_config(std::string_view scheme);

/// How far answers may be from eager's. Without quantization numbers must be the same up to the order of
/// sums; with it directions must be, as far as the bits go.
struct BenchAccuracyBound {
  std::optional<double> relative_error;  ///< |got - eager| / |eager|, norms of whole results, at most
  std::optional<double> cosine;          ///< at least
};
BenchAccuracyBound bench_accuracy_bound(std::string_view scheme);

}  // namespace halftone
