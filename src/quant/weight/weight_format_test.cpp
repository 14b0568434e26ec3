#include "halftone/quant/weight_format.h"

#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include "graph/operators/operators.h"
#include "quant/weight/arithmetic/affine.h"
#include "quant/weight/ops.h"
#include "quant/weight/test_support.h"

namespace halftone {
namespace {

/// -1, 0 or 1 times one scale for the layer, as a user would write it: public headers and ATen only.
class SignFormat final : public WeightFormat {
 public:
  explicit SignFormat(double threshold) : threshold_(threshold) {}
  std::string refuse(int64_t n, int64_t) const override {
    return n == 13 ? "thirteen outputs bring bad luck" : "";
  }
  Parts quantize(const at::Tensor& weight) const override {
    const at::Tensor scale = weight.abs().mean();
    return {{"signs", weight.sign().mul(weight.abs() > scale * threshold_).to(at::kChar)},
            {"size", scale.reshape({1, 1})}};
  }
  at::Tensor dequantize(const QuantizedWeight& weight) const override {
    return weight.part("signs") * weight.part("size");
  }
  at::Tensor linear(const at::Tensor& x, const QuantizedWeight& weight,
                    const std::optional<at::Tensor>& bias) const override {
    return at::linear(x, dequantize(weight).to(x.scalar_type()), bias);
  }

 private:
  double threshold_;
};

QuantConfig sign_config(const std::string& fields = "{}") {
  static const bool registered = [] {
    ConfigType type;
    type.type = "SignConfig";
    type.default_fields = R"({"threshold": 0.5})";
    type.check = [](std::string_view json) {
      if (json.find('-') != std::string_view::npos)
        throw Error(ErrorCode::kInvalidArgument, "SignConfig: threshold < 0");
    };
    type.make_format = [](const QuantConfig& config) {
      const double threshold = std::stod(config.fields().substr(config.fields().find(':') + 1));
      return std::make_shared<SignFormat>(threshold);
    };
    register_config_type(std::move(type));
    return true;
  }();
  EXPECT_TRUE(registered);
  return QuantConfig::of_type("SignConfig", fields);
}

TEST(CustomFormat, WorksLikeABuiltInOne) {
  const QuantizedWeight w = quantize_weight(randn({6, 10}, 1), sign_config(R"({"threshold": 1.0})"), "layer");
  EXPECT_EQ(w.config.describe(), "SignConfig(threshold=1.0)");
  EXPECT_TRUE(w.has_part("signs"));
  const at::Tensor x = randn({3, 10}, 2);
  expect_close(w.format->linear(x, w, {}), exact_linear(x, w, {}), magnitude(x, w), 40);
  EXPECT_THAT(message_of(ErrorCode::kNotFound, [&] { w.part("scale"); }),
              testing::HasSubstr("no part \"scale\""));
}

TEST(CustomFormat, ItsOperatorFindsTheConfigAgain) {
  const QuantizedWeight w = quantize_weight(randn({6, 10}, 1), sign_config(), "layer");
  const FormatOp op = w.format->linear_op(w);
  EXPECT_EQ(op.target, "halftone::custom_linear");
  ASSERT_NE(try_operator(op.target), nullptr);
  const std::vector<at::Tensor> parts{w.part("signs"), w.part("size")};
  const auto call = [&](const at::Tensor& x, const std::optional<at::Tensor>& bias) {
    return ops::custom_linear(x, parts, bias, w.config.to_json(), {"signs", "size"}, {6, 10});
  };
  at::Tensor x = randn({3, 10}, 2).requires_grad_(), bias = randn({6}, 3).requires_grad_();
  const at::Tensor y = call(x, bias);
  EXPECT_TRUE(y.equal(w.format->linear(x, w, bias)));
  y.sum().backward();
  EXPECT_TRUE(at::allclose(x.grad()[0], w.format->dequantize(w).sum(0), 1e-5, 1e-5));
  EXPECT_TRUE(bias.grad().equal(at::full({6}, 3.0f)));
  EXPECT_EQ(ops::custom_linear(x.detach().to(at::kMeta), {parts[0].to(at::kMeta), parts[1].to(at::kMeta)}, {},
                               w.config.to_json(), {"signs", "size"}, {6, 10})
                .sizes(),
            (at::IntArrayRef{3, 6}));
}

TEST(CustomFormat, ItsOperatorSaysWhatIsWrong) {
  const std::string json = sign_config().to_json();
  const at::Tensor x = randn({3, 10}, 2), part = randn({6, 10}, 1);
  const auto refusal = [&](const std::string& config, const std::vector<std::string>& names,
                           at::IntArrayRef sizes) {
    return message_of(ErrorCode::kInvalidArgument,
                      [&] { ops::custom_linear(x, {part}, {}, config, names, sizes); });
  };
  EXPECT_THAT(refusal(json, {"signs", "size"}, {6, 10}), testing::HasSubstr("1 parts, but 2 names"));
  EXPECT_THAT(refusal(json, {"signs"}, {6}), testing::HasSubstr("sizes must be [n, k]"));
  EXPECT_THAT(refusal(R"({"type":"SignConfigg"})", {"signs"}, {6, 10}), testing::HasSubstr("SignConfigg"));
}

TEST(CustomFormat, RefusalsNameTheLayer) {
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                         [] {
                           quantize_weight(randn({13, 4}, 1), sign_config(), "head");
                         }),
              testing::HasSubstr(
                  "head: SignConfig() cannot take a weight of 13 x 4: thirteen outputs bring bad luck"));
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [] { sign_config(R"({"threshold": -1.0})"); }),
              testing::HasSubstr("threshold < 0"));
}

TEST(CustomFormat, TypesAreRegisteredOnceAndWhole) {
  sign_config();
  ConfigType again;
  again.type = "SignConfig";
  again.make_format = [](const QuantConfig&) { return nullptr; };
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { register_config_type(again); }),
              testing::HasSubstr("registered already"));
  again.type = "Int8WeightOnlyConfig";
  message_of(ErrorCode::kInvalidArgument, [&] { register_config_type(again); });
  ConfigType half;
  half.type = "HalfConfig";
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { register_config_type(half); }),
              testing::HasSubstr("has no make_format"));
  again.type = "NothingConfig";
  register_config_type(again);
  EXPECT_THAT(
      message_of(ErrorCode::kInvalidArgument, [] { format_of(QuantConfig::of_type("NothingConfig")); }),
      testing::HasSubstr("gave nothing"));
}

TEST(QuantizeWeight, NamesTheLayerInEveryRefusal) {
  const auto refusal = [](const at::Tensor& weight, const QuantConfig& config) {
    return message_of(ErrorCode::kInvalidArgument, [&] { quantize_weight(weight, config, "encoder.query"); });
  };
  EXPECT_THAT(refusal(at::Tensor(), "int8wo"), testing::HasSubstr("encoder.query: there is no weight"));
  EXPECT_THAT(refusal(randn({3}, 1), "int8wo"),
              testing::HasSubstr("encoder.query: a weight must have two dimensions"));
  EXPECT_THAT(refusal(at::ones({3, 4}, at::kLong), "int8wo"),
              testing::HasSubstr("of type int64 cannot be quantized"));
  EXPECT_THAT(refusal(at::empty({3, 4}, at::kMeta), "int8wo"), testing::HasSubstr("not on the CPU"));
  EXPECT_THAT(refusal(at::zeros({1, 65794}), "int8dq"),
              testing::AllOf(
                  testing::HasSubstr("encoder.query: Int8DynamicActivationInt8WeightConfig() cannot take a "
                                     "weight of 1 x 65794"),
                  testing::HasSubstr("at most 65793")));
  EXPECT_THAT(message_of(ErrorCode::kUnsupported,
                         [] {
                           quantize_weight(randn({3, 4}, 1), "noquant", "layer");
                         }),
              testing::HasSubstr("leaves weights alone"));
}

TEST(QuantizeWeight, LeavesTheWeightAloneAndKeepsNothingOfIt) {
  at::Tensor weight = randn({8, 32}, 1).requires_grad_();
  const at::Tensor before = weight.detach().clone();
  const size_t uses = weight.storage().use_count();
  const QuantizedWeight w = quantize_weight(weight, "int8wo", "layer");
  EXPECT_TRUE(weight.detach().equal(before));
  EXPECT_EQ(weight.storage().use_count(), uses);
  EXPECT_EQ(w.bytes(), 8 * 32 + 8 * 4);
  EXPECT_FALSE(w.part("scale").requires_grad());
}

TEST(SevenBits, StayWithin64AndKeepTheDocumentedScale) {
  at::Tensor weight = randn({20, 50}, 1);
  const QuantizedWeight w = quantize_weight(weight, Int8DynamicActivationInt8WeightConfig{false, 7}, "layer");
  const at::Tensor largest = weight.abs().amax(1);
  EXPECT_TRUE(w.part("scale").equal(largest / 64));
  EXPECT_EQ(w.part("weight").abs().max().item<int>(), 64);
  const at::Tensor error = (w.format->dequantize(w) - weight).abs() / (largest / 64).unsqueeze(1);
  EXPECT_LE(error.max().item<float>(), 0.5001f);  // nothing is clipped
}

// Row quantization as quantize_rows.h defines it, in doubles, then exact integer sums.
TEST(Int8Linear, IsTheFormulaOnQuantizedRows) {
  const at::Tensor x = randn({9, 77}, 3);
  for (const bool symmetric : {false, true}) {
    for (const int bits : {7, 8}) {
      const QuantizedWeight w =
          quantize_weight(randn({33, 77}, 1), Int8DynamicActivationInt8WeightConfig{symmetric, bits}, "l");
      const at::Tensor lo = x.amin(1, true).clamp_max(0), hi = x.amax(1, true).clamp_min(0);
      const at::Tensor scale = symmetric ? x.abs().amax(1, true) / 127 : hi / 255 - lo / 255;
      const at::Tensor zero = symmetric ? at::zeros_like(lo) : (-lo / scale).round();
      const at::Tensor q =
          ((x * scale.reciprocal()).round() + zero).clamp(symmetric ? -127 : 0, symmetric ? 127 : 255) - zero;
      const at::Tensor sums = at::matmul(q.to(at::kDouble), w.part("weight").to(at::kDouble).t());
      const at::Tensor exact = sums * scale.to(at::kDouble) * w.part("scale").to(at::kDouble);
      expect_close(w.format->linear(x, w, {}), exact, exact.abs(), 4);
    }
  }
}

TEST(Operators, RefusePartsThatDoNotFit) {
  const at::Tensor x = randn({3, 64}, 1), q = at::zeros({5, 64}, at::kChar),
                   bytes = at::zeros({5, 32}, at::kByte);
  const at::Tensor scale = at::ones({5}), groups = at::ones({5, 2});
  const auto refusal = [](auto call) { return message_of(ErrorCode::kInvalidArgument, call); };
  EXPECT_THAT(refusal([&] { ops::int8_weight_only_linear(x, q.to(at::kInt), scale, {}); }),
              testing::HasSubstr("int8_weight_only_linear: weight must be int8 of two dimensions"));
  EXPECT_THAT(refusal([&] { ops::int8_weight_only_linear(x, q[0], scale, {}); }),
              testing::HasSubstr("of sizes [64]"));
  EXPECT_THAT(refusal([&] { ops::int8_weight_only_linear(x, q, at::ones({4}), {}); }),
              testing::HasSubstr("scale must be float32 of sizes [5]"));
  EXPECT_THAT(refusal([&] { ops::int8_weight_only_linear(x, q, -scale, {}); }), testing::HasSubstr("scale"));
  EXPECT_THAT(refusal([&] { ops::int8_linear(x, q, scale, {}, 6, false); }),
              testing::HasSubstr("weight_bits is 6"));
  EXPECT_THAT(refusal([&] { ops::int8_linear(x, q + 100, scale, {}, 7, false); }), testing::HasSubstr("100"));
  EXPECT_THAT(refusal([&] { ops::int4_linear(x, bytes, groups, {}, {}, 48, false); }),
              testing::HasSubstr("group size 48"));
  EXPECT_THAT(refusal([&] { ops::int4_linear(x, bytes, scale, {}, {}, 32, false); }),
              testing::HasSubstr("scale must be"));
  EXPECT_THAT(refusal([&] { ops::int4_linear(x, bytes, groups, scale, {}, 32, false); }),
              testing::HasSubstr("zero_point must be float32 of sizes [5, 2]"));
  EXPECT_THAT(refusal([&] { ops::fp8_linear(x, q.to(at::kFloat8_e4m3fn), groups, {}, false, true); }),
              testing::HasSubstr("scale must be float32 of sizes [1]"));
  EXPECT_THAT(refusal([&] { ops::intx_linear(x, bytes, groups, {}, {}, 9, 64, 32); }),
              testing::HasSubstr("bits is 9"));
  EXPECT_THAT(refusal([&] { ops::intx_linear(x, bytes, groups, {}, {}, 4, 64, 24); }),
              testing::HasSubstr("scale must be float32 of sizes [5, 3]"));
  EXPECT_THAT(refusal([&] { ops::intx_linear(x, bytes, groups, {}, {}, 4, 64, -1); }),
              testing::HasSubstr("groups of -1"));
  for (const int64_t inputs : {int64_t{-1}, int64_t{62}, int64_t{65}, INT64_MAX}) {
    EXPECT_THAT(refusal([&] { ops::int4_linear(x, bytes, groups, {}, {}, 32, false, inputs); }),
                testing::HasSubstr("in_features is"));
    EXPECT_THAT(
        refusal([&] { ops::int4_embedding(at::zeros({1}, at::kLong), bytes, groups, {}, 32, {}, inputs); }),
        testing::HasSubstr("in_features is"));
  }
  EXPECT_THAT(refusal([&] { ops::int4_linear(x, bytes, groups, {}, {}, 32, false, 63); }),
              testing::HasSubstr("halftone::int4_linear: x"));
  EXPECT_THAT(refusal([&] { ops::intx_linear(x, bytes, groups, {}, {}, 5, 64, 32); }),
              testing::HasSubstr("weight must be uint8 of sizes [5, 40]"));
}

}  // namespace
}  // namespace halftone
