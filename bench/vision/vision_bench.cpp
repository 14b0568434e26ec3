// vision_bench MODEL.pt2 [--json] [--report]: an image classifier in the interpreter and compiled, fp32 and
// int8dq, at batches 1 and 8. --report: what the plan for batch 1 leaves to ATen.
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "common/candidate.h"
#include "common/report.h"

namespace {

using namespace halftone;

constexpr int64_t kBatches[] = {1, 8};

std::vector<bench::Variant> variants() {
  return {{"eager-fp32", NoQuantConfig{}, false},
          {"fp32", NoQuantConfig{}},
          {"int8dq-7bit", Int8DynamicActivationInt8WeightConfig{.weight_bits = 7}},
          {"int8dq", "int8dq"}};
}

/// Steps of the plan by operator and kernel, and every node that ATen runs with the reason.
void print_plan(const bench::Candidate& candidate) {
  const PlanReport report = candidate.compiled->report(bench::make_inputs(*candidate.module, {kBatches[0]}));
  std::map<std::string, int> counts;
  for (const StepReport& step : report.steps) ++counts[fmt::format("{} by {}", step.target, step.kernel)];
  fmt::print("{}: {} steps, arena {:.1f} MB\n", candidate.name, report.steps.size(),
             static_cast<double>(report.arena_bytes) / 1e6);
  for (const auto& [what, count] : counts) fmt::print("  {:4} x {}\n", count, what);
  for (const std::string& line : report.left_to_aten) fmt::print("  left to ATen: {}\n", line);
}

}  // namespace

int main(int argc, char** argv) {
  std::string model;
  bool json = false, report = false;
  bench::MeasureOptions options{.seconds = 8};
  CLI::App app("An image classifier in the interpreter and compiled, fp32 and quantized");
  app.add_option("MODEL", model, "What scripts/export_vit.py wrote")->required();
  app.add_flag("--json", json, "a JSON line for each measurement, as ../shared/peers writes them");
  app.add_flag("--report", report, "only what runs by which kernel, and what is left to ATen");
  app.add_option("--seconds", options.seconds, "for each batch")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const at::NoGradGuard no_grad;
    const auto candidates = bench::make_candidates(model, variants());
    if (report) {
      for (const bench::Candidate& candidate : candidates) {
        if (candidate.compiled) print_plan(candidate);
      }
      return 0;
    }
    if (!json) bench::print_compile_times(candidates);
    for (const int64_t batch : kBatches) {
      const auto inputs = bench::make_inputs(*candidates[0].module, {batch});
      bench::print_measurements({batch}, bench::measure(candidates, inputs, options), json);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "vision_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
