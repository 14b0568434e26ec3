// executor_bench MODEL.pt2: what the halftone backend costs besides its kernels: microseconds a node in a
// graph of 1,000 tiny operators, milliseconds to compile MiniLM and to plan a shape that it has not seen.
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "halftone/capture/open_model.h"
#include "halftone/compile/compile.h"
#include "halftone/graph/graph.h"

namespace {

using namespace halftone;
using Clock = std::chrono::steady_clock;

template <typename Action>
double microseconds(Action action) {
  const auto start = Clock::now();
  action();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// x1 = relu(x0); x2 = x1 + x0; … : each of eight floats, each read by the next.
std::shared_ptr<GraphModule> chain(int nodes) {
  std::string text = "graph(%x0: user \"x\" f32[8]) {\n";
  for (int i = 1; i <= nodes; ++i) {
    text += i % 2 == 1 ? fmt::format("  %x{}: f32[8] = aten::relu(%x{})\n", i, i - 1)
                       : fmt::format("  %x{}: f32[8] = aten::add.Tensor(%x{}, %x0)\n", i, i - 1);
  }
  CallSpec call;
  call.args = {.kind = TreeSpec::Kind::kTuple, .children = {TreeSpec::leaf()}};
  call.kwargs.kind = TreeSpec::Kind::kDict;
  call.result = {.kind = TreeSpec::Kind::kTuple, .children = {TreeSpec::leaf()}};
  auto module = std::make_shared<GraphModule>(parse_graph(text + fmt::format("  return %x{}\n}}", nodes)),
                                              TensorMap{}, std::move(call));
  module->name = "chain";
  return module;
}

bool verdict(const char* what, double found, double limit, const char* unit) {
  std::printf("%-52s %8.3f %s (limit %g)  %s\n", what, found, unit, limit, found < limit ? "PASS" : "FAIL");
  return found < limit;
}

bool measure_overhead() {
  constexpr int kNodes = 1000;
  const auto compiled = compile(chain(kNodes));
  const std::vector<c10::IValue> inputs = {at::randn({8})};
  const std::vector<at::Tensor> outputs = {at::empty({8})};
  const auto steps = compiled->report(inputs).steps.size();
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) times.push_back(microseconds([&] { compiled->run_into(inputs, outputs); }));
  std::printf("%zu steps for %d nodes\n", steps, kNodes);
  return verdict("executor, a node of eight floats (kernel included)", median(times) / kNodes, 2, "us");
}

std::vector<c10::IValue> sentence(int64_t batch, int64_t tokens) {
  return {at::randint(0, 1000, {batch, tokens}, at::kLong), at::ones({batch, tokens}, at::kLong)};
}

bool measure_plans(const std::string& path) {
  const auto module = open_model(path);
  std::shared_ptr<const CompiledGraph> compiled;
  std::vector<double> compiles, plans;
  for (int i = 0; i < 9; ++i) compiles.push_back(microseconds([&] { compiled = compile(module); }));
  const double first = microseconds([&] { compiled->warm_up(sentence(1, 16)); });
  for (int64_t tokens = 17; tokens < 47; ++tokens) {
    const auto inputs = sentence(1 + tokens % 3, tokens);
    plans.push_back(microseconds([&] { compiled->warm_up(inputs); }));
  }
  std::printf("first plan, all weights packed: %.1f ms\n", first * 1e-3);
  const bool fast_compile = verdict("compile MiniLM", median(compiles) * 1e-3, 1000, "ms");
  return verdict("plan a new shape of MiniLM", median(plans) * 1e-3, 5, "ms") && fast_compile;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: executor_bench MODEL.pt2\n");
    return 2;
  }
  try {
    const bool overhead = measure_overhead();
    return measure_plans(argv[1]) && overhead ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "executor_bench: %s\n", error.what());
    return 1;
  }
}
