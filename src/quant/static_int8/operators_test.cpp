// The operators by themselves: layouts, broadcasting, facts that packing finds out, refusals, and meta
// tensors.
#include "quant/static_int8/operators.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "cpu/isa.h"
#include "quant/static_int8/product.h"
#include "quant/static_int8/test_support.h"

namespace halftone {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

at::Tensor call_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                       const OptionalTensor& residual, int64_t x_max, bool float_output) {
  static_int8::register_operators();
  using Function = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                              const OptionalTensor&, double, int64_t, int64_t, double, int64_t, bool, double,
                              int64_t, int64_t, int64_t);
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow("halftone::int8_static_linear", "")
      .typed<Function>()
      .call(x, weight, scale, {}, residual, 0.02, 3, x_max, 0.05, 7, float_output, 0.1, 11, 2, 250);
}

at::Tensor call_add(const at::Tensor& a, const at::Tensor& b) {
  static_int8::register_operators();
  using Function = at::Tensor(const at::Tensor&, const at::Tensor&, double, int64_t, double, int64_t, double,
                              int64_t, int64_t, int64_t);
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow("halftone::int8_add", "")
      .typed<Function>()
      .call(a, b, 0.02, 3, 0.05, 7, 0.1, 11, 0, 255);
}

at::Tensor random_bytes(at::IntArrayRef sizes, int64_t limit = 256) {
  return at::randint(0, limit, sizes, at::kByte);
}

TEST(Int8Operators, LinearIsTheFormulaForEveryWidth) {
  at::manual_seed(31);
  for (const int64_t weight_limit : {64, 127}) {
    for (const int64_t x_limit : {128, 256}) {
      const at::Tensor x = random_bytes({3, 4, 37}, x_limit), w = random_weight({9, 37}, weight_limit);
      const at::Tensor scale = random_scale(9), residual = random_bytes({3, 4, 9});
      const at::Tensor sums = at::matmul(x.to(at::kLong) - 3, w.to(at::kLong).t()).to(at::kDouble);
      const at::Tensor real = sums * scale.to(at::kDouble) * 0.02;
      const at::Tensor floats = call_linear(x, w, scale, {}, x_limit - 1, true);
      EXPECT_TRUE(at::allclose(floats.to(at::kDouble), real, 1e-6, 1e-6));
      const at::Tensor with = real + (residual.to(at::kDouble) - 7) * 0.05;
      const at::Tensor expected = ((with / 0.1).round() + 11).clamp(2, 250);
      const at::Tensor bytes = call_linear(x, w, scale, residual, x_limit - 1, false);
      const at::Tensor off = (bytes.to(at::kDouble) - expected).abs();
      EXPECT_LE(off.max().item<double>(), 1);
      EXPECT_LE(off.sum().item<double>(), 1) << "of " << off.numel();
    }
  }
}

TEST(Int8Operators, PackingFindsTheBitsOfWeightsAndOfActivations) {
  at::manual_seed(32);
  static_int8::ProductSpec spec;
  spec.shape = static_int8::linear_shape(5, 16, 64);
  spec.weight = random_weight({16, 64}, 64);
  spec.weight_scale = random_scale(16);
  EXPECT_EQ(static_int8::prepare_product(spec).problem.weight_bits, 7);
  EXPECT_EQ(static_int8::prepare_product(spec).problem.activation_bits, 8);
  spec.x_max = 127;
  EXPECT_EQ(static_int8::prepare_product(spec).problem.activation_bits, 7);
  spec.weight.index_put_({at::tensor(3), at::tensor(5)}, at::tensor(65, at::kChar));
  EXPECT_EQ(static_int8::prepare_product(spec).problem.weight_bits, 8) << "a write in place is seen";
  spec.x.zero_point = 128;
  expect_error(ErrorCode::kInvalidArgument, {"x_max 127"}, [&] { static_int8::prepare_product(spec); });
}

TEST(Int8Operators, AddTakesAnyLayoutAndBroadcasts) {
  at::manual_seed(33);
  const at::Tensor a = random_bytes({2, 3, 4, 5});
  const at::Tensor last = a.contiguous(at::MemoryFormat::ChannelsLast);
  for (const at::Tensor& b : {random_bytes({2, 3, 4, 5}), random_bytes({2, 3, 1, 1}), random_bytes({5})}) {
    const at::Tensor sum = (a.to(at::kFloat) - 3) * 0.02F + (b.to(at::kFloat) - 7) * 0.05F;
    const at::Tensor expected = ops::quantize_per_tensor(sum, 0.1, 11, 0, 255, at::kByte);
    EXPECT_TRUE(call_add(a, b).equal(expected));
    EXPECT_TRUE(call_add(last, b).equal(expected));
    EXPECT_TRUE(call_add(last, b).is_contiguous(at::MemoryFormat::ChannelsLast));
  }
}

TEST(Int8Operators, MetaTensorsLieAsResultsDo) {
  at::manual_seed(34);
  const at::Tensor x = random_bytes({2, 37}), w = random_weight({9, 37}), s = random_scale(9);
  const at::Tensor meta = call_linear(x.to(at::kMeta), w.to(at::kMeta), s.to(at::kMeta), {}, 255, false);
  EXPECT_EQ(meta.sizes(), at::IntArrayRef({2, 9}));
  EXPECT_EQ(meta.scalar_type(), at::kByte);
  const at::Tensor images = random_bytes({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor sum = call_add(images.to(at::kMeta), images.to(at::kMeta));
  EXPECT_EQ(sum.strides(), call_add(images, images).strides());
}

TEST(Int8Operators, RefusalsNameTheOperator) {
  at::manual_seed(35);
  const at::Tensor w = random_weight({9, 37}), s = random_scale(9);
  const auto refused = [&](std::initializer_list<std::string> parts, const at::Tensor& x,
                           const at::Tensor& weight, const OptionalTensor& residual, int64_t x_max) {
    expect_error(ErrorCode::kInvalidArgument, parts,
                 [&] { call_linear(x, weight, s, residual, x_max, false); });
  };
  refused({"int8_static_linear", "uint8"}, at::randn({2, 37}), w, {}, 255);
  refused({"int8_static_linear", "columns"}, random_bytes({2, 36}), w, {}, 255);
  refused({"int8_static_linear", "int8"}, random_bytes({2, 37}), w.to(at::kByte), {}, 255);
  refused({"int8_static_linear", "residual"}, random_bytes({2, 37}), w, random_bytes({2, 8}), 255);
  refused({"int8_static_linear", "x_max"}, random_bytes({2, 37}), w, {}, 256);
}

}  // namespace
}  // namespace halftone
