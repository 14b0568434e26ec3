// The backends that are AotAutograd with a compiler: the promises of AotAutograd itself are tested in
// src/autograd.
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <thread>

#include "backend/test_support.h"
#include "halftone/autograd/aot_autograd.h"

namespace halftone {
namespace {

constexpr const char* kPerceptron = R"(
graph(%w: parameter "fc.weight" f32[4, 3], %b: parameter "fc.bias" f32[4], %x: user "x" f32[s0, 3]) {
  %h: f32[s0, 4] = aten::linear(%x, %w, %b)  @ "fc" "Linear"
  %r: f32[s0, 4] = aten::silu(%h)
  %parts: list = aten::split.Tensor(%r, 2, 1)
  %p: f32[s0, 2; ?], %q: f32[s0, 2; ?] = builtin::unpack(%parts)
  %s: f32[s0, 2] = aten::mul.Tensor(%p, %q)
  return %s
})";

std::shared_ptr<GraphModule> perceptron(bool trainable) {
  at::manual_seed(1);
  return module_from_text(kPerceptron, {{"fc.weight", at::randn({4, 3}).set_requires_grad(trainable)},
                                        {"fc.bias", at::randn({4}).set_requires_grad(trainable)}});
}

class AotBackend : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, AotBackend,
                         testing::Values("aot_eager", "aot_eager_decomp_partition", "aot_ts"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(AotBackend, GivesWhatTheInterpreterGives) {
  const auto module = perceptron(false);
  const at::Tensor x = at::randn({5, 3});
  const auto function = compile_with(GetParam(), module, {x});
  const auto expected = Session(module).run({x});
  for (int call = 0; call < 3; ++call) expect_same(function({x}), expected, GetParam());
}

TEST_P(AotBackend, GradientsReachParametersAndInputs) {
  const auto module = perceptron(true);
  const auto eager = compile_with("eager", module);
  const auto function = compile_with(GetParam(), module, {at::ones({5, 3}).set_requires_grad(true)});
  const at::Tensor weight = module->tensor("fc.weight");
  const auto gradients = [&](const CompiledFunction& compiled, const at::Tensor& data) {
    const at::Tensor x = data.clone().set_requires_grad(true);
    compiled({x}).at(0).toTensor().square().sum().backward();
    std::vector<c10::IValue> all{x.grad().clone(), weight.grad().clone()};
    weight.mutable_grad() = at::Tensor();
    return all;
  };
  for (int call = 0; call < 3; ++call) {
    const at::Tensor x = at::randn({5, 3});
    expect_same(gradients(function, x), gradients(eager, x), GetParam());
  }
}

TEST_P(AotBackend, ServesManyThreads) {
  const auto module = perceptron(true);
  const at::Tensor x = at::randn({5, 3});
  const auto function = compile_with(GetParam(), module, {x.clone().set_requires_grad(true)});
  const at::Tensor leaf = x.clone().set_requires_grad(true);
  const at::Tensor expected =
      torch::autograd::grad({compile_with("eager", module)({leaf}).at(0).toTensor().sum()}, {leaf}).at(0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 20; ++call) {
        const at::Tensor own = x.clone().set_requires_grad(true);
        const at::Tensor sum = function({own}).at(0).toTensor().sum();
        expect_same({torch::autograd::grad({sum}, {own}).at(0)}, {expected}, GetParam());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(MemEfficientFusionOptions, AreTorchScriptAndMinCut) {
  const auto takes_silu_apart = [](bool use_decomps) {
    bool apart = false;
    AotOptions options = mem_efficient_fusion_options(use_decomps);
    EXPECT_TRUE(options.fw_compiler && options.bw_compiler && options.partition_fn);
    const PartitionFunction partition = options.partition_fn;
    options.partition_fn = [&apart, partition](const JointGraph& joint) {
      PartitionedGraphs parts = partition(joint);
      EXPECT_LT(saved_bytes(parts), saved_bytes(default_partition(joint)));
      apart = print_graph(*joint.graph).find("aten::silu_backward") == std::string::npos;
      return parts;
    };
    const at::Tensor x = at::randn({5, 3}).set_requires_grad(true);
    const auto module = perceptron(true);
    const auto results = AotAutograd(options)(module, {x})({x});
    expect_same(results, Session(module).run({x}), "fusion");
    return apart;
  };
  EXPECT_FALSE(takes_silu_apart(false));
  EXPECT_TRUE(takes_silu_apart(true));
}

TEST(AotBackends, AreListed) {
  std::vector<std::string> names;
  for (const CompilerInfo& backend : list_compilers({})) names.push_back(backend.name);
  for (const char* name : {"aot_eager", "aot_eager_decomp_partition", "aot_ts"})
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
}

}  // namespace
}  // namespace halftone
