// Every backend against the interpreter, and what each promises besides.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <thread>

#include "backend/test_support.h"
#include "halftone/base/log.h"
#include "halftone/capture/capture_module.h"

namespace halftone {
namespace {

struct Case {
  std::string name;
  std::shared_ptr<GraphModule> module;
  std::vector<c10::IValue> inputs;
};

constexpr const char* kPerceptron = R"(
graph(%w: parameter "fc.weight" f32[4, 3], %b: parameter "fc.bias" f32[4], %x: user "x" f32[s0, 3]) {
  %h: f32[s0, 4] = aten::linear(%x, %w, %b)  @ "fc" "Linear"
  %r: f32[s0, 4] = aten::sigmoid(%h)
  %s: f32[s0, 4] = aten::mul.Tensor(%r, 2.5)
  return %s, %h, None, 7
})";

std::shared_ptr<GraphModule> perceptron() {
  at::manual_seed(1);
  return module_from_text(kPerceptron, {{"fc.weight", at::randn({4, 3})}, {"fc.bias", at::randn({4})}});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  all.push_back({"perceptron", perceptron(), {at::randn({5, 3})}});
  all.push_back({"lists",
                 module_from_text(R"(
graph(%x: user "x" f32[4, 6], %i: user "i" i64[2]) {
  %parts: list = aten::split.Tensor(%x, 2, 1)
  %a: f32[4, 2; ?], %b: f32[4, 2; ?], %c: f32[4, 2; ?] = builtin::unpack(%parts)
  %last: f32[4, 2; ?] = builtin::getitem(%parts, -1)
  %cat: f32[4, 8] = aten::cat([%c, %a, %b, %last], 1)
  %rows: f32[2, 8] = aten::index.Tensor(%cat, [%i])
  %columns: f32[2, 2; ?] = aten::index.Tensor(%rows, [None, %i])
  %values: f32[2], %where: i64[2] = aten::max.dim(%rows, 1)
  %n: int = aten::sym_size.int(%x, 0)
  %r: f32[4, 8] = aten::reshape(%cat, [%n, 8])
  return %columns, %values, %where, %r, %n
})"),
                 {at::randn({4, 6}), at::tensor({2, 1}, at::kLong)}});
  all.push_back({"numbers keep types",
                 module_from_text(R"(
graph(%x: user "x" f32[], %k: user "k" i32[3]) {
  %y: f32[] = aten::mul.Tensor(%x, 2.0)
  %z: i32[3] = aten::add.Tensor(%k, 3, alpha=2)
  %h: bf16[3] = aten::to.dtype(%k, dtype:bf16)
  %c: i32[3] = aten::clamp(%k, None, 5)
  %f: f32[2, 3] = aten::full([2, 3], 1.5, dtype=dtype:f32, device=device:cpu, pin_memory=false)
  return %y, %z, %h, %c, %f
})"),
                 {at::scalar_tensor(1.5F), at::tensor({1, 2, 9}, at::kInt)}});
  torch::nn::Sequential net(torch::nn::Linear(8, 16), torch::nn::GELU(),
                            torch::nn::LayerNorm(torch::nn::LayerNormOptions({16})),
                            torch::nn::Linear(16, 4));
  const ForwardFunction forward = [&net](const std::vector<c10::IValue>& args) {
    return c10::IValue(net->forward(args.at(0).toTensor()));
  };
  all.push_back({"captured", capture(*net, forward, {at::randn({3, 8})}), {at::randn({3, 8})}});
  return all;
}

std::vector<c10::IValue> interpreted(const Case& one) {
  return Session(one.module).run(one.inputs);
}

class EachBackend : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, EachBackend,
                         testing::Values("eager", "eager_noexcept", "ts", "halftone", "relu_compile_error",
                                         "relu_runtime_error", "relu_accuracy_error"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(EachBackend, GivesWhatTheInterpreterGives) {
  const at::NoGradGuard no_grad;
  for (const Case& one : cases()) {
    const auto function = compile_with(GetParam(), one.module, one.inputs);
    // More than once: TorchScript optimizes after it has seen some calls.
    for (int call = 0; call < 4; ++call) expect_same(function(one.inputs), interpreted(one), one.name);
  }
}

TEST_P(EachBackend, ServesManyThreads) {
  const at::NoGradGuard no_grad;
  for (const Case& one : cases()) {
    const auto function = compile_with(GetParam(), one.module, one.inputs);
    const auto expected = interpreted(one);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const at::NoGradGuard here_too;
        for (int call = 0; call < 20; ++call) expect_same(function(one.inputs), expected, one.name);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_P(EachBackend, ChecksInputs) {
  const auto function = compile_with(GetParam(), perceptron());
  expect_error(ErrorCode::kGuard, {"\"x\"", "dimension 1", "test model"}, [&] {
    function({at::randn({2, 5})});
  });
}

constexpr const char* kWriter = R"(
graph(%total: buffer "total" f32[3], %x: user "x" f32[3], %y: user "y" f32[3]) {
  %sum: f32[3] = aten::add.Tensor(%total, %x)
  %twice: f32[3] = aten::mul.Tensor(%x, 2)
  %z: f32[3] = aten::add_.Tensor(%y, 1.0)
  return buffer_mutation "total" %sum, input_mutation "x" %twice, %z
})";

TEST_P(EachBackend, WritesToBuffersAndInputs) {
  const at::NoGradGuard no_grad;
  const auto module = module_from_text(kWriter, {{"total", at::zeros({3})}});
  const auto function = compile_with(GetParam(), module);
  const at::Tensor x = at::ones({3});
  const at::Tensor y = at::ones({3});
  function({x, y});
  const auto second = function({x, y});
  EXPECT_TRUE(at::equal(module->tensor("total"), at::full({3}, 3.0F)));
  EXPECT_TRUE(at::equal(x, at::full({3}, 4.0F)));
  EXPECT_TRUE(at::equal(y, at::full({3}, 3.0F)));
  EXPECT_TRUE(at::equal(second.at(0).toTensor(), at::full({3}, 3.0F)));
}

TEST_P(EachBackend, LosesNoWriteOfManyThreads) {
  const auto module = module_from_text(R"(
graph(%total: buffer "total" i64[1000], %x: user "x" i64[1000]) {
  %sum: i64[1000] = aten::add.Tensor(%total, %x)
  return buffer_mutation "total" %sum
})",
                                       {{"total", at::zeros({1000}, at::kLong)}});
  const auto function = compile_with(GetParam(), module);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 25; ++call) function({at::ones({1000}, at::kLong)});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(at::equal(module->tensor("total"), at::full({1000}, 100, at::kLong)));
}

TEST_P(EachBackend, NamesUnknownOptionsInAWarning) {
  std::string warnings;
  set_log_sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::kWarning) warnings += text;
  });
  compile_with(GetParam(), perceptron(), {}, {{"colour", 3}});
  set_log_sink({});
  EXPECT_NE(warnings.find("colour"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find(GetParam()), std::string::npos) << warnings;
}

class Differentiable : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, Differentiable, testing::Values("eager", "eager_noexcept", "ts"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Differentiable, GradientsReachParametersAndInputs) {
  const auto module = perceptron();
  module->put_tensor("fc.weight", module->tensor("fc.weight").clone().set_requires_grad(true));
  const at::Tensor weight = module->tensor("fc.weight");
  const auto function = compile_with(GetParam(), module);
  for (int call = 0; call < 4; ++call) {
    const at::Tensor x = at::randn({5, 3}).set_requires_grad(true);
    function({x}).at(0).toTensor().sum().backward();
    const at::Tensor gradient = weight.grad().clone();
    const at::Tensor input_gradient = x.grad().clone();
    weight.mutable_grad() = at::Tensor();
    x.mutable_grad() = at::Tensor();
    (at::linear(x, weight, module->tensor("fc.bias")).sigmoid() * 2.5).sum().backward();
    EXPECT_TRUE(at::allclose(gradient, weight.grad(), 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(input_gradient, x.grad(), 1e-5, 1e-6));
    weight.mutable_grad() = at::Tensor();
  }
}

TEST(Eager, SeesTensorsThatWereReplaced) {
  const auto module = perceptron();
  const auto function = compile_with("eager", module);
  module->set_tensor("fc.weight", at::zeros({4, 3}));
  module->set_tensor("fc.bias", at::ones({4}));
  EXPECT_TRUE(at::equal(function({at::randn({2, 3})}).at(1).toTensor(), at::ones({2, 4})));
}

TEST(EagerNoexcept, SaysThatAPromiseWasBroken) {
  const auto module = module_from_text(R"(
graph(%x: user "x" tensor) {
  %y: tensor = aten::reshape(%x, [7])  @ "head" "Head"
  return %y
})");
  expect_error(ErrorCode::kInternal, {"promised", "aten::reshape (%y)", "head"},
               [&] { compile_with("eager_noexcept", module)({at::ones({2})}); });
  expect_error(ErrorCode::kInvalidArgument, {"aten::reshape (%y)"},
               [&] { compile_with("eager", module)({at::ones({2})}); });
}

TEST(HalftoneBackend, RefusesToCutGradients) {
  const auto module = perceptron();
  const auto function = compile_with("halftone", module);
  const at::Tensor x = at::randn({5, 3});
  EXPECT_NO_THROW(function({x}));
  expect_error(ErrorCode::kUnsupported, {"user \"x\"", "AotAutograd"},
               [&] { function({x.clone().set_requires_grad(true)}); });
  module->put_tensor("fc.bias", at::ones({4}).set_requires_grad(true));
  expect_error(ErrorCode::kUnsupported, {"parameter \"fc.bias\"", "AotAutograd"}, [&] { function({x}); });
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(function({x}).at(0).toTensor().requires_grad());
}

TEST(HalftoneBackend, TakesTheOptionsOfCompile) {
  const auto module = perceptron();
  EXPECT_NO_THROW(compile_with("halftone", module, {}, {{"threads", 1}, {"max_plans", 2}}));
  EXPECT_NO_THROW(compile_with("halftone", module, {}, {{"convolutions", "mkldnn"}}));
  expect_error(ErrorCode::kInvalidArgument, {"convolutions", "fastest"}, [&] {
    compile_with("halftone", module, {}, {{"convolutions", "quickest"}});
  });
  expect_error(ErrorCode::kInvalidArgument, {"threads", "integer"}, [&] {
    compile_with("halftone", module, {}, {{"threads", "two"}});
  });
}

}  // namespace
}  // namespace halftone
