// vision_bench MODEL.pt2 [--data F.safetensors] [--json] [--report]: an image classifier in the interpreter
// and compiled, fp32 and int8dq, or with --data calibrated to static int8, at batches 1 and 8. --report: what
// the plan for batch 1 leaves to ATen.
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "common/candidate.h"
#include "common/report.h"
#include "halftone/capture/open_model.h"
#include "halftone/graph/tensor_file.h"
#include "halftone/ptq/static_int8.h"

namespace {

using namespace halftone;

constexpr int64_t kBatches[] = {1, 8};

std::vector<bench::CandidateSpec> specs() {
  return {{"eager-fp32", NoQuantConfig{}, false},
          {"fp32", NoQuantConfig{}},
          {"int8dq-7bit", "int8dq-7bit"},
          {"int8dq", "int8dq"}};
}

/// Static int8 in the widths that differ in speed without VNNI, calibrated two entries at a time.
std::vector<bench::Candidate> static_candidates(const std::string& model, const std::string& data,
                                                const std::string& only) {
  const at::Tensor pixels = load_tensors(data).tensors.at("pixels");
  std::vector<std::vector<c10::IValue>> calls;
  for (const at::Tensor& part : pixels.split(2)) calls.push_back({part});
  std::vector<bench::Candidate> candidates =
      bench::make_candidates(model, {{"eager-fp32", NoQuantConfig{}, false}, {"fp32", NoQuantConfig{}}});
  const auto module = open_model(model);
  std::string statistics;
  for (const StaticInt8Bits bits : {StaticInt8Bits{7, 7}, StaticInt8Bits{7, 8}, StaticInt8Bits{8, 8}}) {
    const std::string name = fmt::format("int8static-{}x{}", bits.activation, bits.weight);
    if (!only.empty() && name != only) continue;
    const StaticInt8Result result = quantize_static(
        *module, calls, {.mapping = static_int8_mapping(bits), .statistics = statistics, .error_calls = 0});
    statistics = result.statistics;
    bench::Candidate candidate{name, result.module, nullptr};
    candidate.compile_ms = bench::milliseconds([&] { candidate.compiled = compile(candidate.module); });
    candidates.push_back(std::move(candidate));
  }
  return candidates;
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
  std::string model, data;
  bool json = false, report = false;
  bench::MeasureOptions options{.seconds = 8};
  CLI::App app("An image classifier in the interpreter and compiled, fp32 and quantized");
  app.add_option("MODEL", model, "What scripts/export_vit.py or export_resnet.py wrote")->required();
  app.add_option("--data", data, "what scripts/export_resnet.py wrote: static int8 instead of int8dq");
  app.add_flag("--json", json, "a JSON line for each measurement, as the peers' scripts write them");
  app.add_flag("--report", report, "only what runs by which kernel, and what is left to ATen");
  app.add_option("--seconds", options.seconds, "for each batch")->capture_default_str();
  app.add_option("--only", options.only,
                 "time this one alone, as the peers are: no other's threads spin beside it");
  CLI11_PARSE(app, argc, argv);
  try {
    const at::NoGradGuard no_grad;
    const auto candidates =
        data.empty() ? bench::make_candidates(model, specs()) : static_candidates(model, data, options.only);
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
