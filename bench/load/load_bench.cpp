// Measures what it takes from the file to the first result: time, and peak memory of the process. Each
// measurement is a fresh child process of this program, because a peak never goes down again.
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/candidate.h"
#include "common/child.h"
#include "common/memory.h"
#include "halftone/capture/open_model.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

namespace {

constexpr int kRounds = 5;
constexpr double kSecondsLimit = 0.5;
constexpr double kFileFactor = 1.3;
constexpr double kFixedMb = 150;
const std::vector<int64_t> kShape = {1, 16};  // batch, tokens

struct Measurement {
  double seconds = 0;
  double baseline_mb = 0;  ///< peak before loading: the program and libtorch
  double peak_mb = 0;
};

Measurement measure_here(const std::string& path, bool map) {
  const c10::AutoGradMode no_grad(false);
  Measurement result;
  result.baseline_mb = bench::peak_mb();
  const auto start = std::chrono::steady_clock::now();
  std::shared_ptr<const GraphModule> module = open_model(path, {.map = map});
  Session session(module);
  const std::vector<c10::IValue> outputs = session.run(bench::make_inputs(*module, kShape));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.peak_mb = bench::peak_mb();
  if (outputs.empty() || !outputs[0].isTensor() || !outputs[0].toTensor().isfinite().all().item().toBool()) {
    throw std::runtime_error("the first result is not a finite tensor");
  }
  return result;
}

Measurement measure_in_child(const std::string& path, bool map) {
  Measurement result;
  const std::string text = bench::output_of_child({path, map ? "--child" : "--child-no-mmap"});
  if (std::sscanf(text.c_str(), "%lf %lf %lf", &result.seconds, &result.baseline_mb, &result.peak_mb) != 3)
    throw std::runtime_error("the child printed something else: " + text);
  return result;
}

const char* verdict(bool pass) {
  return pass ? "PASS" : "MISS";
}

struct Report {
  bool pass = false;
  double median_seconds = 0;
};

/// Prints one table, and whether both limits hold.
Report report(const std::string& path, bool map) {
  const double file_mb = static_cast<double>(std::filesystem::file_size(path)) / 1e6;
  const double limit_mb = kFileFactor * file_mb + kFixedMb;
  std::vector<double> seconds;
  Measurement worst;
  for (int round = 0; round < kRounds; ++round) {
    const Measurement one = measure_in_child(path, map);
    seconds.push_back(one.seconds);
    if (one.peak_mb > worst.peak_mb) worst = one;
  }
  const bool fast = bench::quantile(seconds, 0.5) < kSecondsLimit;
  const bool small = worst.peak_mb < limit_mb;
  fmt::print("{} ({:.1f} MB), weights {}, {} fresh processes\n", path, file_mb, map ? "mapped" : "read",
             kRounds);
  fmt::print("  load to first result at (1,16): median {:.3f} s, worst {:.3f} s   limit {:.1f} s    {}\n",
             bench::quantile(seconds, 0.5), *std::max_element(seconds.begin(), seconds.end()), kSecondsLimit,
             verdict(fast));
  fmt::print(
      "  peak memory of the process:     {:.1f} MB   limit {:.1f} x file + {:.0f} MB = {:.1f} MB    {}\n",
      worst.peak_mb, kFileFactor, kFixedMb, limit_mb, verdict(small));
  fmt::print("  of it added by loading and running: {:.1f} MB (libtorch alone: {:.1f} MB)\n",
             worst.peak_mb - worst.baseline_mb, worst.baseline_mb);
  fmt::print(
      R"({{"bench":"load","mapped":{},"file_mb":{:.3f},"median_s":{:.4f},"peak_mb":{:.1f},"baseline_mb":{:.1f},)"
      R"("limit_s":{},"limit_mb":{:.1f},"pass":{}}})"
      "\n",
      map, file_mb, bench::quantile(seconds, 0.5), worst.peak_mb, worst.baseline_mb, kSecondsLimit, limit_mb,
      fast && small);
  return {fast && small, bench::quantile(seconds, 0.5)};
}

/// The model as it came and the same as .ht, which must be the faster one.
bool compare(const std::string& path, bool map) {
  const Report before = report(path, map);
  if (model_file_kind(path) == ModelFileKind::kHt) return before.pass;
  const auto copy = std::filesystem::temp_directory_path() / fmt::format("load_bench.{}.ht", getpid());
  save_checkpoint(*open_model(path), copy.string());
  const Report after = report(copy.string(), map);
  std::filesystem::remove(copy);
  const bool faster = after.median_seconds < before.median_seconds;
  fmt::print("  .ht against .pt2: {:.3f} s against {:.3f} s    {}\n", after.median_seconds,
             before.median_seconds, verdict(faster));
  return before.pass && after.pass && faster;
}

}  // namespace

}  // namespace halftone

int main(int argc, char** argv) {
  const std::string option = argc == 3 ? argv[2] : "";
  const bool map = !option.ends_with("no-mmap");
  if (argc < 2 || argc > 3) {
    fmt::print(
        stderr,
        "usage: load_bench MODEL.pt2|MODEL.ht [--no-mmap]\nExit 0: within the limits, 1: not, or failed.\n");
    return 2;
  }
  try {
    if (!option.starts_with("--child")) return halftone::compare(argv[1], map) ? 0 : 1;
    const auto result = halftone::measure_here(argv[1], map);
    fmt::print("{} {} {}\n", result.seconds, result.baseline_mb, result.peak_mb);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "load_bench: {}\n", error.what());
    return 1;
  }
}
