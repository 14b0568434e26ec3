// bf16wo: weights are those that ATen makes, products within the kernel's bound of ATen's.
#include <gmock/gmock.h>

#include "quant/weight/ops.h"
#include "quant/weight/test_support.h"

namespace halftone {
namespace {

TEST(Bf16WeightOnly, WeightsAreThoseOfAtenBitForBit) {
  at::Tensor ties = at::empty({1, 4});
  // Halfway between two numbers of bfloat16: to the even one, down and up; and just beyond halfway.
  const uint32_t bits[] = {0x3f808000, 0x3f818000, 0x3f808001, 0x80008000};
  std::memcpy(ties.mutable_data_ptr(), bits, sizeof bits);
  for (const at::Tensor& plain : {ties, randn({33, 61}, 1), randn({4, 8}, 2) * 1e-39}) {
    for (const c10::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
      const at::Tensor weight = plain.to(type);
      const QuantizedWeight w = quantize_weight(weight, "bf16wo", "layer");
      ASSERT_EQ(w.parts.size(), 1u);
      EXPECT_TRUE(w.part("weight").view(at::kShort).equal(weight.to(at::kBFloat16).view(at::kShort)))
          << c10::toString(type);
      EXPECT_EQ(w.bytes(), 2 * weight.numel());
    }
  }
}

TEST(Bf16WeightOnly, ProductsAreAtensOnTheRoundedWeight) {
  for (const auto& [m, n, k] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 384, 384}, {7, 33, 100}, {40, 96, 1536}}) {
    const at::Tensor plain = randn({n, k}, 1), x = randn({m, k}, 2), bias = randn({n}, 3);
    const QuantizedWeight w = quantize_weight(plain, "bf16weightonly", "layer");
    const at::Tensor aten = at::linear(x, plain.to(at::kBFloat16).to(at::kFloat), bias);
    // Both are within (k + 4) · e · Σ|x · w| of the exact sum, and round once more for the bias.
    const at::Tensor bound = (magnitude(x, w) + bias.abs()) * (2 * (double(k) + 5) * 0x1p-24);
    const at::Tensor y = w.format->linear(x, w, bias);
    EXPECT_LE(((y - aten).abs().to(at::kDouble) - bound).max().item<double>(), 0)
        << m << " x " << n << " x " << k;
  }
}

TEST(Bf16WeightOnly, RefusesWeightsThatWouldBecomeInfinite) {
  at::Tensor plain = randn({4, 8}, 1);
  plain[1][2] = 3.4e38f;  // finite, but rounds up beyond the largest
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { quantize_weight(plain, "bf16wo", "head"); }),
              testing::AllOf(testing::HasSubstr("head"), testing::HasSubstr("3.4e+38"),
                             testing::HasSubstr("too large for bfloat16")));
  plain[1][2] = 3.3895e38f;
  EXPECT_NO_THROW(quantize_weight(plain, "bf16wo", "head"));
}

TEST(Bf16WeightOnly, OperatorsRefuseOtherWeights) {
  const at::Tensor x = randn({3, 64}, 1), w = randn({5, 64}, 2);
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { ops::bf16_linear(x, w, {}); }),
              testing::HasSubstr("bf16_linear: weight must be bfloat16 of two dimensions"));
  const at::Tensor index = at::tensor({1}, at::kLong);
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { ops::bf16_embedding(index, w, {}); }),
              testing::HasSubstr("bf16_embedding: weight must be bfloat16 of two dimensions"));
}

}  // namespace
}  // namespace halftone
