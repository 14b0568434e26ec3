// encoder_bench MODEL.pt2 [--json] [--seconds S]: an encoder (ids, mask → hidden states) in the interpreter
// and compiled, fp32 and quantized, at four shapes: median time, spread, speed-up over the interpreter's
// fp32, cosine to it.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "common/candidate.h"
#include "halftone/kernels.h"

namespace {

using namespace halftone;

struct Shape {
  int64_t batch, tokens;
};
constexpr Shape kShapes[] = {{1, 16}, {1, 128}, {8, 128}, {32, 128}};

void print(Shape shape, const std::vector<bench::Measurement>& rows, bool json) {
  for (const bench::Measurement& row : rows) {
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

void print_compile_times(const std::vector<bench::Candidate>& candidates) {
  std::printf("%s, %d threads; compiled in", active_instruction_set().c_str(), at::get_num_threads());
  for (const bench::Candidate& each : candidates) {
    if (each.compiled) std::printf(" %s %.0f ms", each.name.c_str(), each.compile_ms);
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  std::string model;
  bool json = false;
  bench::MeasureOptions options;
  CLI::App app("An encoder in the interpreter and compiled, fp32 and quantized");
  app.add_option("MODEL", model, "MiniLM as .pt2")->required();
  app.add_flag("--json", json, "a JSON line for each measurement, as ../shared/peers writes them");
  app.add_option("--seconds", options.seconds, "for each shape")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const at::NoGradGuard no_grad;
    const auto candidates = bench::make_candidates(model, bench::encoder_variants());
    if (!json) print_compile_times(candidates);
    for (const Shape shape : kShapes) {
      const auto inputs = bench::make_inputs(*candidates[0].module, {shape.batch, shape.tokens});
      print(shape, bench::measure(candidates, inputs, options), json);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "encoder_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
