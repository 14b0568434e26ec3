// encoder_bench MODEL.pt2 [--json] [--schemes a,b]: an encoder (ids, mask → hidden states) in the interpreter
// and compiled, fp32 and quantized, at four shapes: median time, spread, speed-up over the interpreter's
// fp32, cosine to it. Answers are checked before they are timed. All candidates of a shape take turns, so
// that the machine's moods hit them alike.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "halftone/capture.h"
#include "halftone/compile.h"
#include "halftone/kernels.h"
#include "halftone/quantize.h"

namespace {

using namespace halftone;
using Clock = std::chrono::steady_clock;

struct Candidate {
  std::string name;
  std::shared_ptr<GraphModule> module;
  std::shared_ptr<const CompiledModel> compiled;  ///< nullptr: the interpreter
  double compile_ms = 0;
};

struct Shape {
  int64_t batch, tokens;
};
constexpr Shape kShapes[] = {{1, 16}, {1, 128}, {8, 128}, {32, 128}};
constexpr double kLeastCosine = 0.9;  // below it a time means nothing

double milliseconds(const std::function<void()>& run) {
  const auto start = Clock::now();
  run();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Candidate make(const std::string& name, const std::string& path, const QuantConfig& config, bool compiled) {
  Candidate candidate{name, load_pt2(path), nullptr};
  if (!config.is_noquant()) quantize_(*candidate.module, config);
  if (compiled) candidate.compile_ms = milliseconds([&] { candidate.compiled = compile(candidate.module); });
  return candidate;
}

std::vector<Candidate> make_all(const std::string& path) {
  std::vector<Candidate> all;
  all.push_back(make("eager-fp32", path, NoQuantConfig{}, false));
  all.push_back(make("fp32", path, NoQuantConfig{}, true));
  all.push_back(make("int8wo", path, "int8wo", true));
  all.push_back(make("int8dq-7bit", path, Int8DynamicActivationInt8WeightConfig{.weight_bits = 7}, true));
  all.push_back(make("int8dq", path, "int8dq", true));
  all.push_back(make("int4wo", path, "int4wo", true));
  all.push_back(
      make("int4wo-int8act", path, Int4WeightOnlyConfig{.activations = Int4Activations::kInt8}, true));
  all.push_back(make("fp8wo", path, "fp8wo", true));
  return all;
}

at::Tensor run_once(const Candidate& candidate, const std::vector<c10::IValue>& inputs) {
  return (candidate.compiled ? Session(candidate.module, candidate.compiled) : Session(candidate.module))
      .run(inputs)[0]
      .toTensor();
}

double cosine(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.flatten(1).to(at::kDouble), y = b.flatten(1).to(at::kDouble);
  return ((x * y).sum(1) / (x.norm(2, 1) * y.norm(2, 1))).mean().item<double>();
}

struct Row {
  std::string name;
  double median, p10, p90, cosine;
};

double quantile(std::vector<double>& sorted, double q) {
  return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
}

std::vector<Row> measure(const std::vector<Candidate>& candidates, Shape shape, double seconds) {
  at::manual_seed(0);
  const std::vector<c10::IValue> inputs = {at::randint(1000, 20000, {shape.batch, shape.tokens}, at::kLong),
                                           at::ones({shape.batch, shape.tokens}, at::kLong)};
  const at::Tensor exact = run_once(candidates[0], inputs);
  std::vector<Row> rows;
  std::vector<std::vector<double>> times(candidates.size());
  for (const Candidate& candidate : candidates) {
    rows.push_back({candidate.name, 0, 0, 0, cosine(run_once(candidate, inputs), exact)});
    if (!(rows.back().cosine > kLeastCosine)) {
      throw std::runtime_error(
          fmt::format("{}: cosine {} to fp32: wrong, not timed", candidate.name, rows.back().cosine));
    }
  }
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (int round = 0; round < 5 || Clock::now() < end; ++round) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      Session session(candidates[i].module, candidates[i].compiled);
      if (shape.batch * shape.tokens < 1000)
        session.run(inputs);  // short ones would pay for the caches of the one before
      times[i].push_back(milliseconds([&] { session.run(inputs); }));
    }
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    rows[i].median = quantile(times[i], 0.5);
    rows[i].p10 = quantile(times[i], 0.1);
    rows[i].p90 = quantile(times[i], 0.9);
  }
  return rows;
}

void print(Shape shape, const std::vector<Row>& rows, bool json) {
  for (const Row& row : rows) {
    if (json) {
      std::printf(
          R"({"peer": "halftone-%s", "case": [%ld, %ld], "ms": %.4f, "p10": %.4f, "p90": %.4f, "cos": %.5f})"
          "\n",
          row.name.c_str(), shape.batch, shape.tokens, row.median, row.p10, row.p90, row.cosine);
    } else {
      std::printf("(%2ld,%4ld)  %-16s %9.3f ms  (p10 %8.3f, p90 %8.3f)  x %5.2f   cosine %.5f\n", shape.batch,
                  shape.tokens, row.name.c_str(), row.median, row.p10, row.p90, rows[0].median / row.median,
                  row.cosine);
    }
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string model;
  bool json = false;
  double seconds = 4;
  CLI::App app("An encoder in the interpreter and compiled, fp32 and quantized");
  app.add_option("MODEL", model, "MiniLM as .pt2")->required();
  app.add_flag("--json", json, "a JSON line for each measurement, as ../shared/peers writes them");
  app.add_option("--seconds", seconds, "for each shape")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const at::NoGradGuard no_grad;
    const std::vector<Candidate> candidates = make_all(model);
    if (!json) {
      std::printf("%s, %d threads; compiled in", active_instruction_set().c_str(), at::get_num_threads());
      for (const Candidate& each : candidates) {
        if (each.compiled) std::printf(" %s %.0f ms", each.name.c_str(), each.compile_ms);
      }
      std::printf("\n");
    }
    for (const Shape shape : kShapes) print(shape, measure(candidates, shape, seconds), json);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "encoder_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
