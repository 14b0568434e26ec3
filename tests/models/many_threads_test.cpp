// One compiled model, eight threads, a thousand runs each: every result has the bytes that one thread alone
// got. Shapes differ between the threads, so that plans are shared, made and looked up at the same time.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>

#include "halftone/capture/capture.h"
#include "halftone/compile/compile.h"
#include "halftone/quant/quantize.h"

namespace halftone {
namespace {

constexpr int kThreads = 8;
constexpr int kRuns = 1000;

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.is_contiguous() &&
         b.is_contiguous() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

/// The sample inputs, with as many rows as asked for.
std::vector<c10::IValue> encoder_inputs(const GraphModule& module, int64_t batch) {
  std::vector<c10::IValue> inputs;
  for (const c10::IValue& sample : module.sample_inputs) {
    std::vector<int64_t> repeats(static_cast<size_t>(sample.toTensor().dim()), 1);
    repeats.at(0) = batch;
    inputs.emplace_back(sample.toTensor().repeat(repeats).slice(0, 0, batch).contiguous());
  }
  return inputs;
}

void expect_same_bytes(const QuantConfig& config) {
  const std::filesystem::path file = std::filesystem::path(HALFTONE_ZOO) / "bert.pt2";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no zoo: tests/models/export_zoo.py makes it";
  const auto module = load_pt2(file.string());
  if (!config.is_noquant()) quantize_(*module, config);
  const auto compiled = compile(module);
  std::vector<std::vector<c10::IValue>> inputs;
  std::vector<at::Tensor> expected;
  for (int i = 0; i < kThreads; ++i) {
    inputs.push_back(encoder_inputs(*module, 2 + i % 3));
    expected.push_back(compiled->run(inputs.back())[0].toTensor());
  }
  // A second model of the same module: its plans do not exist yet when the threads begin.
  const auto fresh = compile(module);
  std::atomic<int> wrong{0}, done{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int run = 0; run < kRuns; ++run) {
        const CompiledGraph& model = run % 2 == 0 ? *compiled : *fresh;
        if (!same_bytes(model.run(inputs[i])[0].toTensor(), expected[i])) ++wrong;
        ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(done, kThreads * kRuns);
  EXPECT_EQ(fresh->plan_count(), 3u);
}

TEST(ManyThreads, Fp32GivesTheBytesOfOneThread) {
  expect_same_bytes(NoQuantConfig{});
}

TEST(ManyThreads, Int8GivesTheBytesOfOneThread) {
  expect_same_bytes("int8dq");
}

}  // namespace
}  // namespace halftone
