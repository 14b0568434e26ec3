// Benchmark suites: the models, running one, and running many, each in a process of its own.
// Results: results.h. docs/bench.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/base/progress.h"
#include "halftone/bench/results.h"
#include "halftone/compat/baseline.h"

namespace halftone {

struct BenchModelInfo {
  std::string name;  ///< "mlp_mixer"
  std::string what;  ///< one-line description: sizes, what it stands for
  int64_t batch_size = 1;
  bool trains = true;  ///< has a training step
};
/// C++ modules with random weights, the same on every machine: at least twelve.
HALFTONE_API const std::vector<BenchModelInfo>& bench_models();

/// One row of a benchmark run.
struct BenchJob {
  std::string model;                 ///< a name of bench_models(), or a .pt2 or .ht file
  std::string mode = "inference";    ///< or "training"
  std::string scheme = "noquant";    ///< check_bench_scheme() takes it; noquant only, in training
  std::string backend = "halftone";  ///< in training: a backend of compile(module)
  bool performance = true;           ///< times, interleaved with eager's
  bool accuracy = true;              ///< the answers (in training: results and gradients) against eager's
  bool layers = true;                ///< time and error by layer, and the plan of autoquant
  int64_t batch_size = 0;            ///< 0: the model's own
  std::string shapes;  ///< of a file: made-up inputs of these shapes (inputs_of_shapes()) instead
                       ///< of its samples; part of the row's name
  double seconds = 4;  ///< for the times
  int threads = 0;     ///< 0: as many as there are
  uint64_t seed = 0;
  BaselineOptions baseline;
  std::string cache_dir;  ///< of autoquant; empty: none
  bool operator==(const BenchJob&) const = default;
};

/// The rows of torchao's benchmark: "noquant", "int8dynamic", "int8weightonly", "int4weightonly",
/// "autoquant".
HALFTONE_API std::vector<std::string> default_bench_schemes();
/// Those and autoquant_schemes().
HALFTONE_API std::vector<std::string> bench_schemes();
/// Any name of schemes(), and autoquant. kInvalidArgument, with the nearest name, for an unknown one;
/// kUnsupported, with the command that does it, for one that needs data.
HALFTONE_API void check_bench_scheme(std::string_view name);

/// In this process. An exception of the model or the backend becomes the row's accuracy word and error.
/// kInvalidArgument for an invalid job: an unknown model (with the nearest), scheme, mode,
/// backend.
///
/// Eager is the C++ module itself, without gradients in inference; for a file, the interpreter.
/// - accuracy: "pass" without quantization if |got - eager| ≤ 1e-4 |eager| (norms of whole results; in
///   training 1e-3 for all gradients together); with it, if the cosine of each result is at least 0.98, 0.9
///   for the int4 schemes, 0.995 for autoquant (which plans for 0.996, on other inputs). An element that is
///   not finite although eager's is fails. Layers that a scheme cannot take stay as they are; if it can take
///   none, the row is "pass_due_to_skip", says so as its error, and has no times.
/// - times: eager and candidate take turns (measure.h); the speed-up is the median of the rounds' ratios.
/// - compilation_latency: from the C++ module (from the loaded file) to the end of the first call,
///   with quantizing and, of autoquant, planning.
/// - peaks: the weights as they are stored and what a call adds at most, of Halftone also what compiling
///   adds: packed weights.
/// - layers: in inference with backend "halftone". A layer's error includes that of the layers before it.
HALFTONE_API BenchRow run_bench(const BenchJob& job);

/// A job as one line, for a child process, and the child's whole work: a job's JSON in, a row's JSON out.
/// Never throws.
HALFTONE_API std::string to_json(const BenchJob& job);
HALFTONE_API BenchJob bench_job_from_json(std::string_view json);
HALFTONE_API std::string run_bench_child(std::string_view job_json);

struct BenchRunOptions {
  /// A program and its first arguments, which gets the job's JSON as one more and prints run_bench_child():
  /// {"…/halftone", "bench-child"}. Empty: all jobs run in this process.
  std::vector<std::string> command;
  double timeout = 300;      ///< seconds a job; then the child is killed and the row's accuracy is "timeout"
  int64_t memory_limit = 0;  ///< bytes that a child may keep in memory; past it the row is "OOM". 0: none
  ProgressCallback progress;
  std::function<void(const BenchRow&)> row;  ///< as each is done: for appending to a file
};
/// Every job is a row, a crash too: "fail_to_run", with the signal or exit code and the last words on stderr;
/// "infra_error" if the child gave no row. The machine is filled in. kInvalidArgument, before anything
/// runs, if one of the jobs is invalid.
HALFTONE_API BenchResults run_bench_suite(const std::vector<BenchJob>& jobs,
                                          const BenchRunOptions& options = {});
HALFTONE_API BenchMachine this_machine();

/// Which of the models run: patterns as in QuantizeOptions, and every N-th from the K-th on.
struct BenchSelection {
  std::string only;     ///< empty: all
  std::string exclude;  ///< empty: none
  int part = 1, parts = 1;
};
/// "2/4". kInvalidArgument for anything else.
HALFTONE_API void set_partition(BenchSelection& selection, std::string_view text);
/// `suite`: "builtin", a folder of .pt2 files, or one file. Names and paths for BenchJob::model, sorted.
/// kInvalidArgument if nothing is left, kNotFound if there is no such suite.
HALFTONE_API std::vector<std::string> select_bench_models(const std::string& suite,
                                                          const BenchSelection& selection = {});

}  // namespace halftone
