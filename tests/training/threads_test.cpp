// One compiled function, many threads, forward and backward. Built with the thread sanitizer.
#include <torch/csrc/autograd/autograd.h>

#include <thread>

#include "halftone/autograd/aot_autograd.h"
#include "halftone/compile/compile_module.h"
#include "training/steps.h"

namespace halftone {
namespace {

constexpr uint64_t kThreads = 8, kCalls = 1000;

/// Calls `compiled` from all threads at once; every hundredth result and gradient is compared with eager's.
int count_wrong(const TrainingModel& model, const ForwardFunction& compiled, at::IntArrayRef sizes) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kCalls; ++i) {
        const at::Tensor x = seeded(sizes, t * kCalls + i).requires_grad_();
        const at::Tensor result = compiled({x}).toTensor();
        const auto gradient = torch::autograd::grad({result.sum()}, {x});
        if (i % 100 != 0) continue;
        const at::Tensor y = x.detach().clone().requires_grad_();
        const at::Tensor eager = model.forward({y}).toTensor();
        const auto expected = torch::autograd::grad({eager.sum()}, {y});
        if (!at::allclose(result, eager, 1e-5, 1e-6) || !at::allclose(gradient[0], expected[0], 1e-5, 1e-6))
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return wrong;
}

TEST(ManyThreads, CallOneCompiledFunction) {
  const TrainingModel model = training_model("layer_norm");
  AotOptions options;
  options.fw_compiler = nop_compiler();
  const AotAutograd aot(options);
  const ForwardFunction compiled = aot(*model.module, model.forward, model.examples);
  EXPECT_EQ(count_wrong(model, compiled, {5, 6}), 0);
}

TEST(ManyThreads, CompileAtTheirFirstCall) {
  const TrainingModel model = training_model("mlp_gelu");
  CompileModuleOptions options;
  options.backend = "aot_eager";
  const CompiledModule compiled = compile(model.module, model.forward, options);
  const ForwardFunction forward = [&](const std::vector<c10::IValue>& args) { return compiled(args); };
  EXPECT_EQ(count_wrong(model, forward, {4, 6}), 0);
  EXPECT_EQ(compiled.counters().compilations, 1);
  EXPECT_EQ(compiled.counters().calls, static_cast<int64_t>(kThreads * kCalls));
}

}  // namespace
}  // namespace halftone
