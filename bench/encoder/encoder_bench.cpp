// encoder_bench MODEL.pt2 [--json] [--seconds S]: an encoder (ids, mask → hidden states) in the interpreter
// and compiled, fp32 and quantized, at four shapes: median time, spread, speed-up over the interpreter's
// fp32, cosine to it.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "common/candidate.h"
#include "common/report.h"

namespace {

using namespace halftone;

// batch, tokens
const std::vector<std::vector<int64_t>> kShapes = {{1, 16}, {1, 128}, {8, 128}, {32, 128}};

/// The ids that bench/peers/encoder.py draws, so that cosines can be compared too.
std::vector<c10::IValue> peers_inputs(const std::vector<int64_t>& shape) {
  at::manual_seed(0);
  return {at::randint(1000, 20000, shape, at::kLong), at::ones(shape, at::kLong)};
}

}  // namespace

int main(int argc, char** argv) {
  std::string model;
  bool json = false;
  bench::MeasureOptions options;
  CLI::App app("An encoder in the interpreter and compiled, fp32 and quantized");
  app.add_option("MODEL", model, "MiniLM as .pt2")->required();
  app.add_flag("--json", json, "a JSON line for each measurement, as the peers' scripts write them");
  app.add_option("--seconds", options.seconds, "for each shape")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const at::NoGradGuard no_grad;
    const auto candidates = bench::make_candidates(model, bench::encoder_candidates());
    if (!json) bench::print_compile_times(candidates);
    for (const std::vector<int64_t>& shape : kShapes) {
      const auto inputs = peers_inputs(shape);
      bench::print_measurements(shape, bench::measure(candidates, inputs, options), json);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "encoder_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
