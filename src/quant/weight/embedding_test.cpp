#include <gmock/gmock.h>

#include "graph/operators/operators.h"
#include "quant/weight/ops.h"
#include "quant/weight/test_support.h"

namespace halftone {
namespace {

class EmbeddingFormat : public testing::TestWithParam<QuantConfig> {
 protected:
  QuantizedWeight table(c10::ScalarType type = at::kFloat) const {
    return quantize_weight(randn({50, 64}, 1).to(type), GetParam(), "embeddings");
  }
};

TEST_P(EmbeddingFormat, RowsAreThoseOfTheDequantizedTable) {
  for (const c10::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    const QuantizedWeight w = table(type);
    ASSERT_TRUE(w.format->has_embedding());
    const at::Tensor plain = w.format->dequantize(w);
    for (const c10::ScalarType index : {at::kLong, at::kInt}) {
      for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{}, {0}, {7}, {2, 3, 4}}) {
        const at::Tensor indices = at::randint(0, 50, sizes, at::kLong).to(index);
        const at::Tensor rows = w.format->embedding(indices, w);
        EXPECT_EQ(rows.scalar_type(), type);
        EXPECT_TRUE(rows.equal(plain.index({indices.to(at::kLong)}).to(type)));
      }
    }
    const at::Tensor strided = at::randint(0, 50, {6, 8}, at::kLong).t();
    EXPECT_TRUE(w.format->embedding(strided, w).equal(plain.index({strided}).to(type)));
  }
}

TEST_P(EmbeddingFormat, MetaShapesAreTheRealOnes) {
  const QuantizedWeight w = table(at::kBFloat16);
  QuantizedWeight meta = w;
  for (auto& [name, part] : meta.parts) part = part.to(at::kMeta);
  const at::Tensor indices = at::randint(0, 50, {2, 3}, at::kLong);
  const at::Tensor shape = w.format->embedding(indices.to(at::kMeta), meta);
  EXPECT_EQ(shape.sizes(), (at::IntArrayRef{2, 3, 64}));
  EXPECT_EQ(shape.scalar_type(), at::kBFloat16);
}

TEST_P(EmbeddingFormat, RefusesWhatDoesNotFit) {
  const QuantizedWeight w = table();
  const auto refusal = [&](const at::Tensor& indices) {
    return message_of(ErrorCode::kInvalidArgument, [&] { w.format->embedding(indices, w); });
  };
  EXPECT_THAT(refusal(at::tensor({3, 50}, at::kLong)), testing::HasSubstr("50"));
  EXPECT_THAT(refusal(at::tensor({-1}, at::kLong)), testing::HasSubstr("-1"));
  EXPECT_THAT(refusal(at::tensor({1.0f})), testing::HasSubstr("indices must be int64 or int32"));
}

TEST_P(EmbeddingFormat, ItsOperatorExistsWithItsPartsAndConstants) {
  const QuantizedWeight w = table();
  const FormatOp op = w.format->embedding_op(w);
  const c10::OperatorHandle* handle = try_operator(op.target);
  ASSERT_NE(handle, nullptr) << op.target;
  const auto has = [&](const std::string& name) {
    return handle->schema().argumentIndexWithName(name).has_value();
  };
  for (const auto& [name, part] : w.parts) EXPECT_TRUE(has(name)) << name;
  for (const NamedArgument& constant : op.constants) EXPECT_TRUE(has(constant.name)) << constant.name;
}

TEST_P(EmbeddingFormat, PartsHaveNoGradientAndSayIt) {
  QuantizedWeight w = table();
  for (auto& [name, part] : w.parts) {
    if (name == "scale" || w.parts.size() == 1) part = part.clone().requires_grad_();
  }
  EXPECT_THAT(
      message_of(ErrorCode::kInvalidArgument, [&] { w.format->embedding(at::tensor({3}, at::kLong), w); }),
      testing::HasSubstr("requires a gradient"));
}

INSTANTIATE_TEST_SUITE_P(Builtin, EmbeddingFormat,
                         testing::Values(QuantConfig(Int8WeightOnlyConfig{}),
                                         QuantConfig(Int4WeightOnlyConfig{}),
                                         QuantConfig(Int4WeightOnlyConfig{64, false}),
                                         QuantConfig(Bf16WeightOnlyConfig{})));

TEST(Embedding, OthersSayThatTheyHaveNone) {
  const QuantizedWeight w = quantize_weight(randn({5, 64}, 1), Float8WeightOnlyConfig{}, "layer");
  EXPECT_FALSE(w.format->has_embedding());
  const std::string message =
      message_of(ErrorCode::kUnsupported, [&] { w.format->embedding(at::tensor({3}, at::kLong), w); });
  EXPECT_THAT(message, testing::HasSubstr("Float8WeightOnlyConfig() has no kernel for embeddings"));
  message_of(ErrorCode::kUnsupported, [&] { w.format->embedding_op(w); });
}

TEST(Embedding, RefusesTypesThatAreNoFloats) {
  const QuantizedWeight w = quantize_weight(randn({5, 64}, 1), Int8WeightOnlyConfig{}, "layer");
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                         [&] {
                           ops::int8_embedding(at::tensor({3}, at::kLong), w.part("weight"), w.part("scale"),
                                               at::kLong);
                         }),
              testing::HasSubstr("dtype must be floating-point"));
}

}  // namespace
}  // namespace halftone
