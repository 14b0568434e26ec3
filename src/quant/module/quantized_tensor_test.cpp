#include "halftone/quant/quantized_tensor.h"

#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <sstream>
#include <thread>

#include "quant/module/test_support.h"

namespace halftone {
namespace {

TEST(QuantizedTensor, LooksLikeTheWeight) {
  const at::Tensor weight = toy_tensor(6, 4);
  EXPECT_TRUE(is_quantized_tensor(weight));
  EXPECT_EQ(weight.sizes(), at::IntArrayRef({6, 4}));
  EXPECT_EQ(weight.strides(), at::IntArrayRef({4, 1}));
  EXPECT_EQ(weight.scalar_type(), at::kFloat);
  EXPECT_TRUE(weight.device().is_cpu());
  EXPECT_TRUE(weight.is_contiguous());
  EXPECT_FALSE(weight.requires_grad());
  EXPECT_EQ(layer_of(weight), "toy.layer");
  EXPECT_EQ(weight.t().sizes(), at::IntArrayRef({4, 6}));
  EXPECT_TRUE(is_transposed(weight.t()));
  EXPECT_FALSE(is_transposed(weight.t().t()));
  EXPECT_FALSE(is_quantized_tensor(at::ones({2, 2})));
  EXPECT_FALSE(is_quantized_tensor(at::Tensor()));
  expect_error(ErrorCode::kInvalidArgument, {"not quantized"}, [] { quantized_weight_of(at::ones({2, 2})); });
}

/// All spellings of x · Wᵀ + b, each against the plain weight.
void expect_products(const at::Tensor& weight) {
  const at::Tensor plain = weight.dequantize();
  const at::Tensor x = seeded_randn({5, weight.size(1)}, 2);
  const at::Tensor batch = seeded_randn({2, 3, weight.size(1)}, 3);
  const at::Tensor bias = seeded_randn({weight.size(0)}, 4);
  const auto close = [](const at::Tensor& a, const at::Tensor& b) {
    return a.sizes() == b.sizes() && at::allclose(a, b, 1e-5, 1e-5);
  };
  EXPECT_TRUE(close(at::linear(x, weight, bias), at::linear(x, plain, bias)));
  EXPECT_TRUE(close(at::linear(batch, weight), at::linear(batch, plain)));
  EXPECT_TRUE(close(at::linear(x[0], weight, bias), at::linear(x[0], plain, bias)));
  EXPECT_TRUE(close(at::addmm(bias, x, weight.t()), at::addmm(bias, x, plain.t())));
  EXPECT_TRUE(close(at::addmm(bias, x, weight.t(), 0.5, 2), at::addmm(bias, x, plain.t(), 0.5, 2)));
  EXPECT_TRUE(close(at::addmm(at::full_like(bias, NAN), x, weight.t(), 0, 2), at::mm(x, plain.t()) * 2));
  EXPECT_TRUE(close(at::addmm(at::ones({5, 1}), x, weight.t()), at::addmm(at::ones({5, 1}), x, plain.t())));
  EXPECT_TRUE(close(at::mm(x, weight.transpose(0, -1)), at::mm(x, plain.t())));
  EXPECT_TRUE(close(at::matmul(batch, weight.numpy_T()), at::matmul(batch, plain.t())));
  EXPECT_TRUE(close(at::matmul(x[0], weight.permute({1, 0})), at::matmul(x[0], plain.t())));
  EXPECT_TRUE(close(at::linear(x, weight.slice(0, 1, 3)), at::linear(x, plain.slice(0, 1, 3))));
  EXPECT_TRUE(
      close(at::matmul(batch, weight.t().narrow(1, 2, 2)), at::matmul(batch, plain.t().narrow(1, 2, 2))));
  EXPECT_TRUE(close(at::linear(x, weight.chunk(3)[1]), at::linear(x, plain.chunk(3)[1])));
  EXPECT_TRUE(close(at::linear(x, weight.split(4)[1]), at::linear(x, plain.split(4)[1])));
  const at::Tensor indices = at::arange(6).view({2, 3}) % weight.size(0);
  EXPECT_TRUE(close(at::embedding(weight, indices), at::embedding(plain, indices)));
}

TEST(QuantizedTensor, MultipliesInEveryMode) {
  const at::Tensor weight = toy_tensor(6, 4);
  expect_products(weight);
  {
    const at::NoGradGuard no_grad;
    expect_products(weight);
  }
  const c10::InferenceMode inference;
  expect_products(weight);
  expect_products(toy_tensor(6, 4));
}

TEST(QuantizedTensor, GradientsReachInputAndBias) {
  const at::Tensor weight = toy_tensor(6, 4);
  const at::Tensor plain = weight.dequantize();
  const auto gradients = [](const at::Tensor& w) {
    at::Tensor x = seeded_randn({3, 4}, 5).requires_grad_();
    at::Tensor bias = seeded_randn({6}, 6).requires_grad_();
    const at::Tensor y = at::addmm(bias, x, w.t()) + at::matmul(x, w.t()) + at::linear(x, w, bias);
    return torch::autograd::grad({y.square().sum()}, {x, bias});
  };
  const auto expected = gradients(plain);
  const auto got = gradients(weight);
  EXPECT_TRUE(at::allclose(got[0], expected[0], 1e-4, 1e-4));
  EXPECT_TRUE(at::allclose(got[1], expected[1], 1e-4, 1e-4));
}

TEST(QuantizedTensor, NeverTakesAGradientItself) {
  at::Tensor weight = toy_tensor(6, 4);
  weight.requires_grad_(true);
  const at::Tensor x = at::ones({1, 4});
  for (const auto& use :
       std::vector<std::function<void()>>{[&] { at::linear(x, weight); }, [&] { weight.t(); },
                                          [&] { weight.dequantize(); }, [&] { weight.clone(); }}) {
    expect_error(ErrorCode::kUnsupported, {"toy.layer", "ToyConfig", "gradient"}, use);
  }
  EXPECT_FALSE(weight.detach().requires_grad());
  {
    const at::NoGradGuard no_grad;  // where no gradient can be lost
    EXPECT_EQ(at::linear(x, weight).size(1), 6);
  }
  weight.requires_grad_(false);
  EXPECT_EQ(at::linear(x, weight).size(1), 6);
}

TEST(QuantizedTensor, RefusesWhatItCannotDo) {
  const at::Tensor weight = toy_tensor(6, 4);
  const auto refused = [](const std::string& op, const std::function<void()>& call) {
    expect_error(ErrorCode::kUnsupported, {"toy.layer", "ToyConfig", op, "dequantize()"}, call);
  };
  refused("aten::add.Tensor", [&] { weight + at::ones({1}); });
  refused("aten::mul_.Scalar", [&] { weight.clone().mul_(2); });
  refused("aten::cat", [&] { at::cat({at::ones({6, 4}), weight}); });
  refused("aten::copy_", [&] { at::ones({6, 4}).copy_(weight); });
  refused("aten::copy_", [&] { weight.clone().copy_(at::ones({6, 4})); });
  refused("aten::linear", [&] { at::linear(weight, at::ones({6, 4})); });
  refused("aten::linear", [&] { at::linear(at::ones({1, 6}), weight.t()); });
  refused("aten::mm", [&] { at::mm(weight, at::ones({4, 2})); });
  refused("aten::addmm", [&] { at::addmm(weight, at::ones({6, 2}), at::ones({2, 4})); });
  refused("aten::slice", [&] { weight.slice(1, 0, 2); });
  refused("aten::slice", [&] { weight.slice(0, 0, 6, 2); });
  refused("aten::embedding", [&] { at::embedding(weight.t(), at::zeros({1}, at::kLong)); });
  refused("aten::to", [&] { weight.to(at::kMeta); });
  refused("aten::to", [&] { weight.to(weight.options().layout(at::kSparse)); });
  expect_error(ErrorCode::kInvalidArgument, {"toy.layer", "[..., 4]", "[2, 5]"}, [&] {
    at::linear(at::ones({2, 5}), weight);
  });
  EXPECT_THROW(weight.data_ptr(), c10::Error);
  EXPECT_THROW(weight.storage(), c10::Error);
}

TEST(QuantizedTensor, CopiesConvertsAndPrints) {
  const at::Tensor weight = toy_tensor(2, 3);
  const at::Tensor plain = weight.dequantize();
  for (const at::Tensor& copy : {weight.detach(), weight.clone(), weight.alias(), weight.variable_data(),
                                 weight.tensor_data(), weight.to(at::kFloat), weight.to(at::kCPU)}) {
    ASSERT_TRUE(is_quantized_tensor(copy));
    EXPECT_TRUE(same(copy.dequantize(), plain));
  }
  EXPECT_TRUE(same(weight.t().dequantize(), plain.t()));
  EXPECT_TRUE(same(weight.to(at::kDouble), plain.to(at::kDouble)));
  EXPECT_TRUE(same(weight.to(at::kHalf), plain.to(at::kHalf)));
  EXPECT_EQ(at::ones({2}).to(at::kHalf).type_as(weight).scalar_type(), at::kFloat);
  EXPECT_TRUE(same(at::zeros_like(weight), at::zeros({2, 3})));
  EXPECT_TRUE(same(weight.new_ones({4}), at::ones({4})));
  std::ostringstream quantized_text, plain_text;
  quantized_text << weight;
  plain_text << plain;
  // The numbers are those of the plain tensor; the last line names the type.
  EXPECT_EQ(quantized_text.str().substr(0, 20), plain_text.str().substr(0, 20));
  EXPECT_NE(quantized_text.str().find("{2,3}"), std::string::npos) << quantized_text.str();
}

TEST(QuantizedTensor, SetDataThereAndBack) {
  at::Tensor parameter = seeded_randn({6, 4}, 7).requires_grad_();
  const at::Tensor handle = parameter;
  const at::Tensor weight = toy_tensor(6, 4);
  parameter.set_data(weight);
  EXPECT_TRUE(is_quantized_tensor(handle));
  EXPECT_FALSE(handle.requires_grad());
  EXPECT_TRUE(same(handle.dequantize(), weight.dequantize()));
  parameter.set_data(toy_tensor(6, 4, 9));
  EXPECT_TRUE(same(handle.dequantize(), toy_tensor(6, 4, 9).dequantize()));
  expect_error(ErrorCode::kUnsupported, {"toy.layer", "Module::to()"}, [&] {
    parameter.set_data(at::ones({6, 4}, at::kHalf));
  });
  EXPECT_TRUE(is_quantized_tensor(handle));
  parameter.set_data(at::ones({6, 4}));
  EXPECT_FALSE(is_quantized_tensor(handle));
  EXPECT_TRUE(same(handle + 0, at::ones({6, 4})));
}

TEST(QuantizedTensor, KeepsTheDtypeOfTheWeight) {
  const at::Tensor half = seeded_randn({6, 4}, 8).to(at::kBFloat16);
  const at::Tensor weight = make_quantized_tensor(quantize_weight(half, toy_config(), "b"), "b");
  EXPECT_EQ(weight.scalar_type(), at::kBFloat16);
  EXPECT_EQ(weight.dequantize().scalar_type(), at::kBFloat16);
  EXPECT_EQ(at::linear(at::ones({1, 4}, at::kBFloat16), weight).scalar_type(), at::kBFloat16);
}

TEST(QuantizedTensor, RowsAreCutOnce) {
  const at::Tensor weight = toy_tensor(6, 4);
  const auto codes = [](const at::Tensor& t) {
    return quantized_weight_of(t).part("codes").unsafeGetTensorImpl();
  };
  EXPECT_EQ(codes(weight.slice(0, 2, 4)), codes(weight.narrow(0, 2, 2)));
  EXPECT_EQ(codes(weight.chunk(3)[1]), codes(weight.t().slice(1, 2, 4)));
  EXPECT_NE(codes(weight.slice(0, 2, 4)), codes(weight.slice(0, 2, 5)));
  EXPECT_EQ(layer_of(weight.slice(0, 2, 4)), "toy.layer[2:4]");
  EXPECT_EQ(layer_of(weight.slice(0, -100, 100)), "toy.layer");
}

TEST(QuantizedTensor, ManyThreads) {
  const at::Tensor weight = toy_tensor(12, 4);
  const at::Tensor x = seeded_randn({2, 4}, 1);
  const at::Tensor expected = at::linear(x, weight.dequantize());
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const int64_t start = i % 11;
        const at::Tensor y = at::linear(x, weight.slice(0, start, start + 1));
        if (!at::allclose(y, expected.narrow(1, start, 1), 1e-5, 1e-5)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace halftone
