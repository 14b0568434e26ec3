// The operators of reference graphs beside ATen's quantized tensors.
#include "quant/ptq/quantize_op.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string_view>

#include "graph/test_support.h"
#include "halftone/base/version.h"

namespace halftone {
namespace {

TEST(QuantizeOp, IsWhatAtenGivesForQuantizedTensors) {
  at::manual_seed(0);
  const at::Tensor x = at::randn({2, 5, 7, 3}) * 3;
  for (const double scale : {0.011, 0.5, 1.0 / 3}) {
    const at::Tensor ours = ops::quantize_per_tensor(x, scale, 101, 0, 255, at::kByte);
    const at::Tensor theirs = at::quantize_per_tensor(x, scale, 101, at::kQUInt8);
    EXPECT_TRUE(at::equal(ours, theirs.int_repr()));
    EXPECT_TRUE(at::equal(ops::dequantize_per_tensor(ours, scale, 101), theirs.dequantize()));
  }
}

TEST(QuantizeOp, HalvesGoWhereAtenSentThem) {
  // Means of bytes with a shared scale, as pooling makes them, are full of halves. Up to torch 2.13 ATen
  // added the zero point before it rounded, since 2.14 after it. Ours does not follow: a file gives the same
  // answers with every torch.
  const bool aten_adds_first = std::string_view(torch_version()).starts_with("2.13");
  for (const int64_t zero_point : {0, 96, 97}) {
    const at::Tensor x = at::arange(-90, 90, at::kFloat) * 0.5 * 0.02087250165641308;
    const at::Tensor ours = ops::quantize_per_tensor(x, 0.02087250165641308, zero_point, 0, 255, at::kByte);
    const at::Tensor theirs = at::quantize_per_tensor(x, 0.02087250165641308, zero_point, at::kQUInt8);
    const at::Tensor aten = (x * (1.0F / 0.02087250165641308F)).add_(zero_point).round_().clamp_(0, 255);
    EXPECT_TRUE(at::equal(ours, aten.to(at::kByte))) << zero_point;
    if (aten_adds_first) {
      EXPECT_TRUE(at::equal(ours, theirs.int_repr())) << zero_point;
    } else {
      const at::Tensor apart = (ours.to(at::kInt) - theirs.int_repr().to(at::kInt)).abs();
      EXPECT_LE(apart.max().item<int>(), 1) << zero_point;
    }
  }
}

TEST(QuantizeOp, RoundsHalvesToEvenAndStaysInItsRange) {
  const at::Tensor x = at::tensor({0.5F, 1.5F, 2.5F, -0.5F, 200.0F, -200.0F});
  const at::Tensor q = ops::quantize_per_tensor(x, 1, 3, 0, 127, at::kByte);
  EXPECT_TRUE(at::equal(q, at::tensor({4, 4, 6, 2, 127, 0}).to(at::kByte)));
}

TEST(QuantizeOp, NanIsTheUpperEndAndInfinityBoth) {
  const float infinity = std::numeric_limits<float>::infinity();
  const at::Tensor x = at::tensor({std::nanf(""), infinity, -infinity});
  const at::Tensor q = ops::quantize_per_tensor(x, 0.1, 7, -128, 127, at::kChar);
  EXPECT_TRUE(at::equal(q, at::tensor({127, 127, -128}).to(at::kChar)));
}

TEST(QuantizeOp, KeepsChannelsLast) {
  const at::Tensor x = at::ones({1, 4, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor q = ops::quantize_per_tensor(x, 0.1, 0, 0, 255, at::kByte);
  EXPECT_TRUE(q.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(ops::dequantize_per_tensor(q, 0.1, 0).is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST(QuantizeOp, ViewsBecomeDense) {
  at::manual_seed(0);
  const at::Tensor x = at::randn({2, 5, 3}).transpose(1, 2);
  const at::Tensor q = ops::quantize_per_tensor(x, 0.1, 9, 0, 255, at::kByte);
  EXPECT_TRUE(q.is_contiguous());
  EXPECT_TRUE(at::equal(q, ops::quantize_per_tensor(x.contiguous(), 0.1, 9, 0, 255, at::kByte)));
  const at::Tensor meta = ops::quantize_per_tensor(x.to(at::kMeta), 0.1, 9, 0, 255, at::kByte);
  EXPECT_EQ(meta.strides(), q.strides());
}

TEST(QuantizeOp, ChannelsHaveTheirOwnScales) {
  at::manual_seed(0);
  const at::Tensor w = at::randn({4, 3, 2}), scales = at::tensor({0.01F, 0.02F, 0.03F});
  const at::Tensor zeros = at::tensor({0, 1, -3}).to(at::kInt);
  const at::Tensor theirs = at::quantize_per_channel(w, scales, zeros, 1, at::kQInt8);
  EXPECT_TRUE(
      at::equal(ops::dequantize_per_channel(theirs.int_repr(), scales, zeros, 1), theirs.dequantize()));
}

TEST(QuantizeOp, DynamicTakesTheRangeOfTheCall) {
  at::manual_seed(0);
  const at::Tensor x = at::randn({3, 8});
  EXPECT_TRUE(at::equal(ops::quantize_dequantize_dynamic(x, at::kByte, true),
                        at::quantize_per_tensor_dynamic(x, at::kQUInt8, true).dequantize()));
  EXPECT_EQ(ops::quantize_dequantize_dynamic(at::empty({0, 8}), at::kByte, false).numel(), 0);
}

TEST(QuantizeOp, MetaSaysSizesAndTypes) {
  const at::Tensor x = at::empty({2, 3}, at::device(at::kMeta));
  const at::Tensor q = ops::quantize_per_tensor(x, 0.1, 0, 0, 255, at::kByte);
  EXPECT_EQ(q.scalar_type(), at::kByte);
  EXPECT_EQ(q.sizes(), x.sizes());
  EXPECT_EQ(ops::dequantize_per_tensor(q, 0.1, 0).scalar_type(), at::kFloat);
}

TEST(QuantizeOp, RefusesWhatItCannotMean) {
  const at::Tensor x = at::ones({2});
  const auto quantize = [&](double scale, int64_t zero, int64_t least, int64_t largest,
                            at::ScalarType dtype) {
    return [=] { ops::quantize_per_tensor(x, scale, zero, least, largest, dtype); };
  };
  const ErrorCode code = ErrorCode::kInvalidArgument;
  expect_error(code, {"scale"}, quantize(0, 0, 0, 255, at::kByte));
  expect_error(code, {"scale"}, quantize(std::nan(""), 0, 0, 255, at::kByte));
  expect_error(code, {"[0, 256]"}, quantize(1, 0, 0, 256, at::kByte));
  expect_error(code, {"zero point -1"}, quantize(1, -1, 0, 255, at::kByte));
  expect_error(code, {"not int32"}, quantize(1, 0, 0, 255, at::kInt));
  expect_error(code, {"float32"},
               [&] { ops::quantize_per_tensor(x.to(at::kDouble), 1, 0, 0, 255, at::kByte); });
  expect_error(code, {"axis 2"}, [] {
    ops::dequantize_per_channel(at::ones({2, 2}).to(at::kChar), at::ones({2}), at::zeros({2}), 2);
  });
}

}  // namespace
}  // namespace halftone
