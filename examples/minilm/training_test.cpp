// A step of fine-tuning MiniLM with its real weights: compiled, every gradient is eager's.
#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "halftone/compile/compile_module.h"
#include "minilm/encoder.h"

namespace minilm {
namespace {

using namespace halftone;

std::map<std::string, at::Tensor> gradients(Encoder& encoder, const ForwardFunction& forward,
                                            const std::vector<c10::IValue>& inputs) {
  encoder->zero_grad();
  forward(inputs).toTensor().square().mean().backward();
  std::map<std::string, at::Tensor> found;
  for (const auto& item : encoder->named_parameters())
    if (item.value().grad().defined()) found[item.key()] = item.value().grad().clone();
  return found;
}

TEST(CompiledMiniLm, GradientsAreEagers) {
  if (std::string(MINILM_DIR).empty()) GTEST_SKIP() << "all-MiniLM-L6-v2 is not installed";
  Encoder encoder = load_encoder(MINILM_DIR);
  for (at::Tensor& parameter : encoder->parameters()) parameter.requires_grad_();
  const ForwardFunction forward = [encoder](const std::vector<c10::IValue>& args) mutable -> c10::IValue {
    return encoder->forward(args[0].toTensor(), args[1].toTensor());
  };
  at::Tensor mask = at::ones({2, 24}, at::kLong);
  mask.select(0, 1).slice(0, 20).fill_(0);
  const std::vector<c10::IValue> inputs = {at::randint(encoder->config().vocab_size, {2, 24}, at::kLong),
                                           mask};
  const auto expected = gradients(encoder, forward, inputs);
  ASSERT_GT(expected.size(), 90U);
  // Of the whole model: that of a key's bias is 0 but for rounding, because softmax does not see it.
  double scale = 0;
  for (const auto& [name, gradient] : expected) scale = std::max(scale, gradient.abs().max().item<double>());
  for (const char* backend : {"aot_eager", "aot_eager_decomp_partition", "halftone"}) {
    CompileModuleOptions options;
    options.backend = backend;
    const CompiledModule compiled = compile(encoder.ptr(), forward, options);
    const auto found = gradients(
        encoder, [&](const std::vector<c10::IValue>& args) { return compiled(args); }, inputs);
    ASSERT_EQ(found.size(), expected.size()) << backend;
    for (const auto& [name, gradient] : expected) {
      EXPECT_TRUE(at::allclose(found.at(name), gradient, 1e-4, 1e-6 * scale)) << backend << " " << name;
    }
  }
}

}  // namespace
}  // namespace minilm
