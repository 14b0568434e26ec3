// backend_load_bench MODEL.pt2: from a .ht on disk to the first result at (1, 16) on the halftone backend,
// checksum, compiling and packing included; and the private memory that this takes beyond the mapped weights
// and the plan's arena. fp32 and int8dq, with and without packed panels in the file. Each measurement is a
// fresh process.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/candidate.h"
#include "common/child.h"
#include "common/memory.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/compile/compile.h"

namespace {

using namespace halftone;
namespace fs = std::filesystem;

constexpr int kRounds = 7;
constexpr double kLimitMs = 150;
constexpr double kLimitMb = 60;
const std::vector<int64_t> kShape = {1, 16};

struct Loading {
  double load_ms = 0, compile_ms = 0, run_ms = 0;
  double private_mb = 0;  ///< without the arena
  double mapped_mb = 0, arena_mb = 0;
  double total_ms() const { return load_ms + compile_ms + run_ms; }
};

/// The child's part.
Loading load_here(const std::string& path) {
  const at::NoGradGuard no_grad;
  const double before = bench::memory_use(path).private_mb;
  Loading result;
  std::shared_ptr<GraphModule> module;
  std::shared_ptr<const CompiledGraph> compiled;
  at::Tensor answer;
  result.load_ms = bench::milliseconds([&] { module = load_checkpoint(path); });
  const auto inputs = bench::make_inputs(*module, kShape);
  result.compile_ms = bench::milliseconds([&] { compiled = compile(module); });
  result.run_ms = bench::milliseconds([&] { answer = Session(module, compiled).run(inputs)[0].toTensor(); });
  const bench::MemoryUse after = bench::memory_use(path);
  if (!answer.isfinite().all().item().toBool()) throw std::runtime_error("the first result is not finite");
  result.arena_mb = static_cast<double>(compiled->report(inputs).arena_bytes) / 1e6;
  result.private_mb = after.private_mb - before - result.arena_mb;
  result.mapped_mb = after.mapped_mb;
  return result;
}

Loading load_in_child(const std::string& path) {
  Loading result;
  const std::string text = bench::output_of_child({path, "--child"});
  if (std::sscanf(text.c_str(), "%lf %lf %lf %lf %lf %lf", &result.load_ms, &result.compile_ms,
                  &result.run_ms, &result.private_mb, &result.mapped_mb, &result.arena_mb) != 6)
    throw std::runtime_error("the child printed something else: " + text);
  return result;
}

const char* verdict(bool pass) {
  return pass ? "PASS" : "FAIL";
}

bool report(const std::string& name, const std::string& path) {
  std::vector<Loading> rounds;
  for (int i = 0; i < kRounds; ++i) rounds.push_back(load_in_child(path));
  std::sort(rounds.begin(), rounds.end(),
            [](const Loading& a, const Loading& b) { return a.total_ms() < b.total_ms(); });
  const Loading median = rounds[kRounds / 2];
  const bool fast = median.total_ms() < kLimitMs, small = median.private_mb < kLimitMb;
  fmt::print("{} ({:.1f} MB)\n", name, static_cast<double>(fs::file_size(path)) / 1e6);
  fmt::print(
      "  first result at (1,16): {:6.1f} ms = load {:.1f} + compile {:.1f} + plan and run {:.1f}   "
      "limit {:.0f} ms   {}\n",
      median.total_ms(), median.load_ms, median.compile_ms, median.run_ms, kLimitMs, verdict(fast));
  fmt::print(
      "  private memory:         {:6.1f} MB, beside {:.1f} MB mapped and an arena of {:.1f} MB   "
      "limit {:.0f} MB   {}\n",
      median.private_mb, median.mapped_mb, median.arena_mb, kLimitMb, verdict(small));
  fmt::print(R"({{"bench":"first result","what":"{}","ms":{:.2f},"load_ms":{:.2f},"compile_ms":{:.2f},)"
             R"("run_ms":{:.2f},"private_mb":{:.2f},"mapped_mb":{:.2f},"arena_mb":{:.2f},"limit_ms":{},)"
             R"("limit_mb":{},"pass":{}}})"
             "\n",
             name, median.total_ms(), median.load_ms, median.compile_ms, median.run_ms, median.private_mb,
             median.mapped_mb, median.arena_mb, kLimitMs, kLimitMb, fast && small);
  std::fflush(stdout);
  return fast && small;
}

/// Saves, measures, removes.
bool report_all(const std::string& path) {
  const bench::CandidateSpec specs[] = {{"fp32", NoQuantConfig{}, false}, {"int8dq", "int8dq", false}};
  const fs::path file = fs::temp_directory_path() / fmt::format("backend_load_bench.{}.ht", getpid());
  bool pass = true;
  for (const bench::CandidateSpec& spec : specs) {
    const bench::Candidate candidate = bench::make_candidate(path, spec);
    save_checkpoint(*candidate.module, file.string());
    pass &= report(spec.name, file.string());
    const auto plain_bytes = fs::file_size(file);
    save_checkpoint(*candidate.module, file.string(), {.packed = true});
    if (fs::file_size(file) > plain_bytes) {
      pass &= report(spec.name + ", packed panels in the file", file.string());
    } else {
      fmt::print("{}: files hold packed panels of quantized weights only\n", spec.name);
    }
    fs::remove(file);
  }
  return pass;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string option = argc == 3 ? argv[2] : "";
  if (argc < 2 || argc > 3 || (argc == 3 && option != "--child")) {
    fmt::print(stderr,
               "usage: backend_load_bench MODEL.pt2\nExit 0: within the limits, 1: not, or failed.\n");
    return 2;
  }
  try {
    if (option.empty()) return report_all(argv[1]) ? 0 : 1;
    const Loading result = load_here(argv[1]);
    fmt::print("{} {} {} {} {} {}\n", result.load_ms, result.compile_ms, result.run_ms, result.private_mb,
               result.mapped_mb, result.arena_mb);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "backend_load_bench: {}\n", error.what());
    return 1;
  }
}
