// The work of halftone bench.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "halftone/bench/bench.h"

namespace halftone::cli {

struct BenchRequest {
  std::string suite = "builtin";
  bool performance = false, accuracy = false;  ///< neither: both
  bool training = false, inference = false;    ///< neither: inference
  std::vector<std::string> schemes;            ///< empty: default_bench_schemes()
  std::vector<std::string> backends = {"halftone"};
  std::vector<int64_t> batch_sizes = {0};
  std::vector<std::string> shapes;  ///< a row each; empty: the model's sample inputs
  uint64_t seed = 0;                ///< of made-up inputs
  BenchSelection selection;
  double timeout = BenchRunOptions{}.timeout;
  int64_t memory_limit = 0;
  BaselineOptions baseline;
  double seconds = BenchJob{}.seconds;
  std::string cache;
  bool in_process = false;
  std::vector<std::string> libraries;
  int64_t max_steps = 0;        ///< 0: the library's default
  std::string csv, json, html;  ///< files; empty: none
  bool force = false;           ///< write over the model
  std::string check;            ///< the expectations
  double tolerance = BenchCheckOptions{}.tolerance;
  bool update = false;
};

/// Every row that is asked for: models × modes × backends × schemes × batch sizes or shapes. Models that do
/// not train have no row in training, and neither have schemes.
std::vector<BenchJob> bench_jobs(const BenchRequest& request, int threads);

/// Gives the exit code.
int run_bench_request(const BenchRequest& request, const CommonOptions& common, Console& console);
void list_bench_models(const BenchRequest& request, const CommonOptions& common, Console& console);
void compare_bench_files(const std::string& a, const std::string& b, Console& console);

}  // namespace halftone::cli
