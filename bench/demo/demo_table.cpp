// demo_table MODEL.pt2: one encoder in the interpreter and compiled, fp32 and quantized: time, cosine to the
// fp32 answer, size of the file, memory. What a newcomer sees first, so it fits 100 columns and says what its
// columns mean.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "common/candidate.h"
#include "common/child.h"
#include "common/memory.h"
#include "halftone/checkpoint.h"
#include "halftone/error.h"
#include "halftone/kernels.h"
#include "halftone/progress.h"
#include "halftone/table.h"

namespace {

using namespace halftone;
namespace fs = std::filesystem;

constexpr int kColumns = 100;
constexpr int kTicks = 20;  // of the progress line, for the timing

struct DemoRow {
  std::string name, what;
  QuantConfig config;
  bool compiled = true;
};

std::vector<DemoRow> demo_rows() {
  return {{"eager", "fp32, op by op in the interpreter", NoQuantConfig{}, false},
          {"fp32", "fp32, compiled", NoQuantConfig{}},
          {"int8wo", "8-bit weights", "int8wo"},
          {"int8dq", "8-bit weights and activations", "int8dq"},
          {"int8dq, 7 bits", "7-bit weights, 8-bit activations",
           Int8DynamicActivationInt8WeightConfig{.weight_bits = 7}},
          {"int4wo", "4-bit weights in groups of 32", "int4wo"},
          {"int4wo, int8 act.", "4-bit weights, 8-bit activations",
           Int4WeightOnlyConfig{.activations = Int4Activations::kInt8}}};
}

/// One line on a terminal, drawn over itself; elsewhere nothing.
class ProgressLine {
 public:
  explicit ProgressLine(int64_t total) : total_(total), enabled_(isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() { draw(std::string(kColumns - 1, ' ') + "\r"); }
  void show(int64_t done, const std::string& what) {
    const std::string line = render_progress(done, total_, what, kColumns - 1);
    draw(line + std::string(static_cast<size_t>(kColumns - 1) - line.size(), ' '));
  }

 private:
  void draw(const std::string& line) const {
    if (enabled_) fmt::print(stderr, "\r{}", line);
  }
  int64_t total_;
  bool enabled_;
};

/// The child's part: what a process needs that only loads the file and runs it.
int64_t memory_of_running(const std::string& path, const std::vector<int64_t>& shape, bool compiled) {
  const at::NoGradGuard no_grad;
  const double before = bench::memory_use(path).private_mb;
  const std::shared_ptr<GraphModule> module = load_checkpoint(path);
  Session session(module, compiled ? compile(module) : nullptr);
  const auto outputs = session.run(bench::make_inputs(*module, shape));
  const bench::MemoryUse after = bench::memory_use(path);
  return static_cast<int64_t>((after.private_mb - before + after.mapped_mb) * 1e6);
}

struct Sizes {
  int64_t disk = 0, memory = 0;  ///< bytes
};

Sizes sizes_of(const bench::Candidate& candidate, const std::vector<int64_t>& shape) {
  const fs::path file = fs::temp_directory_path() / fmt::format("demo_table.{}.ht", getpid());
  save_checkpoint(*candidate.module, file.string());
  Sizes sizes{static_cast<int64_t>(fs::file_size(file)), 0};
  try {
    sizes.memory = std::stoll(
        bench::output_of_child({file.string(), "--child", candidate.compiled ? "halftone" : "eager",
                                "--shape", std::to_string(shape[0]), std::to_string(shape[1])}));
  } catch (...) {
    fs::remove(file);
    throw;
  }
  fs::remove(file);
  return sizes;
}

int show(const std::string& path, const std::vector<int64_t>& shape, double seconds) {
  const at::NoGradGuard no_grad;
  const auto rows = demo_rows();
  const auto count = static_cast<int64_t>(rows.size());
  std::vector<bench::Candidate> candidates;
  std::vector<Sizes> sizes;
  std::vector<bench::Measurement> times;
  std::vector<c10::IValue> inputs;
  {
    ProgressLine progress(count + kTicks);
    for (const DemoRow& row : rows) {
      progress.show(static_cast<int64_t>(candidates.size()),
                    row.name + ": quantize, compile, save, load, run");
      candidates.push_back(bench::make_candidate(path, {row.name, row.config, row.compiled}));
      sizes.push_back(sizes_of(candidates.back(), shape));
    }
    inputs = bench::make_inputs(*candidates[0].module, shape);
    const auto tick = [&](double share) {
      progress.show(count + static_cast<int64_t>(share * kTicks), "timing all of them in turns");
    };
    tick(0);
    times = bench::measure(candidates, inputs, {.seconds = seconds, .least_cosine = -1, .progress = tick});
  }
  std::vector<Row> table;
  for (size_t i = 0; i < rows.size(); ++i) {
    table.push_back({rows[i].name, rows[i].what, fmt::format("{:.2f} ms", times[i].median),
                     fmt::format("{:.2f} x", times[0].median / times[i].median),
                     fmt::format("{:.4f}", times[i].cosine), describe_bytes(sizes[i].disk),
                     describe_bytes(sizes[i].memory)});
  }
  const auto taken = inputs[0].toTensor().sizes();
  fmt::print("{} of {} tokens, {} threads, {}\n\n",
             taken[0] == 1 ? "1 text" : fmt::format("{} texts", taken[0]), taken[1], at::get_num_threads(),
             active_instruction_set());
  fmt::print("{}", render_table({{"scheme"},
                                 {"what it is", Align::kLeft, Cut::kMiddle, 20},
                                 {"time", Align::kRight},
                                 {"speed-up", Align::kRight},
                                 {"cosine", Align::kRight},
                                 {"on disk", Align::kRight},
                                 {"in memory", Align::kRight}},
                                table, kColumns));
  fmt::print(
      "\ntime: median of all rounds. cosine: to the answer of the first line. on disk: the .ht file.\n"
      "in memory: what loading that file and running it once adds to a process, mapped weights included.\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string model, child;
  std::vector<int64_t> shape{1, 128};
  double seconds = 6;
  CLI::App app("An encoder in the interpreter and compiled, fp32 and quantized, in one table");
  app.add_option("MODEL", model, "An encoder of (ids, mask) as .pt2")->required();
  app.add_option("--shape", shape, "batch and tokens; no more than the model takes")
      ->expected(2)
      ->capture_default_str();
  app.add_option("--seconds", seconds, "of timing")->capture_default_str();
  app.add_option("--child", child, "")->group("");  // this program's own: see memory_of_running
  CLI11_PARSE(app, argc, argv);
  try {
    if (child.empty()) return show(model, shape, seconds);
    fmt::print("{}\n", memory_of_running(model, shape, child == "halftone"));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "demo_table: {}\n", error.what());
    return 1;
  }
}
