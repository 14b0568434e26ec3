// Prepared modules in the rest of the library: compile(module), capture(), save_module().
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adam.h>

#include "halftone/capture/capture_module.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/compile/compile.h"
#include "halftone/compile/compile_module.h"
#include "halftone/quant/qat.h"
#include "halftone/quant/quantized_tensor.h"

namespace {

using namespace halftone;
namespace nn = torch::nn;

/// The models are small: threads would only wait for each other.
const bool one_thread = (at::set_num_threads(1), true);

at::Tensor noise(at::IntArrayRef sizes, uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(sizes, generator, at::kFloat);
}

/// A block of a transformer: attention (its projections come in parts), a norm, a perceptron.
struct Block : nn::Module {
  nn::MultiheadAttention attention{
      register_module("attention", nn::MultiheadAttention(nn::MultiheadAttentionOptions(32, 4)))};
  nn::LayerNorm norm{register_module("norm", nn::LayerNorm(nn::LayerNormOptions({32})))};
  nn::Linear up{register_module("up", nn::Linear(32, 64))};
  nn::Linear down{register_module("down", nn::Linear(64, 32))};
  explicit Block(uint64_t seed = 1) {
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : parameters()) parameter.copy_(noise(parameter.sizes(), seed++) * 0.2);
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = norm(x + std::get<0>(attention(x, x, x)));
    return y + down(at::gelu(up(y)));
  }
};

constexpr QatScales kAllScales[] = {QatScales::kRange, QatScales::kMovingAverage, QatScales::kLearned};

std::shared_ptr<Block> prepared(QatScales scales, const char* scheme = "int4wo-int8act") {
  auto block = std::make_shared<Block>();
  QatOptions options;
  options.scales = scales;
  if (scales != QatScales::kLearned) options.freeze_after = 3;
  prepare_qat(*block, scheme, options);
  return block;
}

std::vector<double> losses_of(Block& block, const std::function<at::Tensor(const at::Tensor&)>& forward) {
  torch::optim::Adam optimizer(block.parameters(), torch::optim::AdamOptions(1e-2));
  std::vector<double> losses;
  for (uint64_t step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = (forward(noise({5, 2, 32}, 50)) - noise({5, 2, 32}, 60)).pow(2).mean();
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

TEST(CompiledQat, TrainsAsEagerDoes) {
  for (const char* backend : {"aot_eager", "halftone"}) {
    for (const QatScales scales : kAllScales) {
      SCOPED_TRACE(std::string(backend) + " " + std::to_string(static_cast<int>(scales)));
      const auto eager = prepared(scales), compiled = prepared(scales);
      CompileModuleOptions options;
      options.backend = backend;
      auto fast = compile(compiled, options);
      const auto expected = losses_of(*eager, [&](const at::Tensor& x) { return eager->forward(x); });
      const auto losses = losses_of(*compiled, fast);
      EXPECT_LT(expected.back(), expected.front() * 0.9);
      // A weight on the edge between two integers takes the last bits of a sum to be rounded one way or the
      // other.
      for (size_t i = 0; i < losses.size(); ++i)
        EXPECT_NEAR(losses[i], expected[i], (i < 2 ? 1e-4 : 1e-2) * expected[i]) << i;
      const auto buffers = compiled->named_buffers();
      for (const auto& item : eager->named_buffers()) {
        EXPECT_TRUE(at::allclose(item.value(), buffers[item.key()], 1e-2, 1e-3)) << item.key();
      }
      EXPECT_EQ(buffers["up.weight_fake_quant.steps"].item<int64_t>(), 6);
    }
  }
}

TEST(CompiledQat, FollowsTheWeightsInEvaluation) {
  const auto block = prepared(QatScales::kRange);
  auto fast = compile(block);
  block->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor x = noise({5, 2, 32}, 3);
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(at::allclose(fast(x), block->forward(x), 1e-4, 1e-4));
    block->up->weight.mul_(2);
  }
}

TEST(CapturedQat, TheGraphRoundsAsTheModuleDoes) {
  for (const QatScales scales : kAllScales) {
    const auto block = prepared(scales);
    losses_of(*block, [&](const at::Tensor& x) { return block->forward(x); });
    block->eval();
    const at::NoGradGuard no_grad;
    const at::Tensor x = noise({5, 2, 32}, 3), expected = block->forward(x);
    const auto graph = capture(*block, std::tuple(x));
    EXPECT_NE(print_graph(graph->graph()).find("halftone::fake_quantize"), std::string::npos);
    Session session(graph), fast(graph, compile(graph));
    EXPECT_TRUE(session({x}).toTensor().equal(expected));
    EXPECT_TRUE(at::allclose(fast({x}).toTensor(), expected, 1e-4, 1e-4));
    const std::string path = testing::TempDir() + "qat_graph.ht";
    save_checkpoint(*graph, path);
    Session loaded(load_checkpoint(path));
    EXPECT_TRUE(loaded({x}).toTensor().equal(expected));
  }
}

TEST(SavedQat, ModulesKeepTheirPreparation) {
  const std::string path = testing::TempDir() + "qat_module.ht";
  for (const QatScales scales : kAllScales) {
    const auto block = prepared(scales);
    losses_of(*block, [&](const at::Tensor& x) { return block->forward(x); });
    save_module(*block, path);
    auto other = std::make_shared<Block>(9);
    QatOptions options;
    options.scales = scales;
    prepare_qat(*other, "int4wo-int8act", options);
    load_module(*other, path);
    EXPECT_TRUE(is_fake_quantized(other->up->weight));
    EXPECT_TRUE(other->up->weight.requires_grad());
    const at::Tensor x = noise({5, 2, 32}, 3);
    EXPECT_TRUE(other->forward(x).equal(block->forward(x)));
    const auto names = other->named_parameters();
    losses_of(*other, [&](const at::Tensor& y) { return other->forward(y); });
    EXPECT_FALSE(other->up->weight.equal(block->up->weight)) << "still trainable";
    // A plain module does not take it, and says what is missing.
    Block plain;
    EXPECT_THROW(load_module(plain, path), Error);

    convert_qat(*block);
    save_module(*block, path);
    Block deployed;
    load_module(deployed, path);
    EXPECT_TRUE(is_quantized_tensor(deployed.up->weight));
    EXPECT_TRUE(deployed.forward(x).equal(block->forward(x)));
  }
}

}  // namespace
