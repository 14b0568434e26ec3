// int8dq.
#include <fmt/format.h>

#include "kernels/int8_linear/int8_linear.h"
#include "quant/weight/arithmetic/affine.h"
#include "quant/weight/formats/formats.h"
#include "quant/weight/linear_format.h"
#include "quant/weight/ops.h"

namespace halftone {
namespace {

class Int8Format final : public WeightFormat {
 public:
  explicit Int8Format(const Int8DynamicActivationInt8WeightConfig& config) : config_(config) {}

  std::string refuse(int64_t, int64_t k) const override {
    if (k <= kernels::kInt8LinearMaxK) return {};
    return fmt::format("{} inputs could overflow 32-bit sums; at most {}", k, kernels::kInt8LinearMaxK);
  }

  Parts quantize(const at::Tensor& weight) const override { return quantize_typed(weight, at::kFloat); }

  Parts quantize_typed(const at::Tensor& weight, c10::ScalarType dtype) const override {
    const AffineParts parts = quantize_affine(weight, weight.size(1), int8_rule(config_.weight_bits, dtype));
    return {{"weight", parts.q}, {"scale", parts.scale.squeeze(1)}};
  }

  at::Tensor dequantize(const QuantizedWeight& weight) const override {
    return dequantize_affine(weight.part("weight"), weight.part("scale"), {});
  }

  at::Tensor linear(const at::Tensor& x, const QuantizedWeight& weight,
                    const std::optional<at::Tensor>& bias) const override {
    return ops::int8_linear(x, weight.part("weight"), weight.part("scale"), bias, config_.weight_bits,
                            config_.symmetric_activations);
  }

  FormatOp linear_op(const QuantizedWeight&) const override {
    return {"halftone::int8_linear",
            {{"weight_bits", config_.weight_bits}, {"symmetric_activations", config_.symmetric_activations}}};
  }

 private:
  Int8DynamicActivationInt8WeightConfig config_;
};

QuantConfig int8_config(const Node& node) {
  return Int8DynamicActivationInt8WeightConfig{flag_of(node, "symmetric_activations"),
                                               static_cast<int>(number_of(node, "weight_bits", 8))};
}

}  // namespace

const LinearFormat& int8_linear_format() {
  static const LinearFormat format{
      .name = "int8",
      .target = "halftone::int8_linear",
      .parts = {"weight", "scale"},
      .required_parts = 2,
      .attributes = {"weight_bits", "symmetric_activations"},
      .config = int8_config,
      .takes_quantized_rows = true,
      .multiplied_bits = [](const LinearAttributes& attributes) { return attributes.at(0) < 8 ? 7 : 8; }};
  return format;
}

std::shared_ptr<const WeightFormat> make_format(const Int8DynamicActivationInt8WeightConfig& config) {
  return std::make_shared<Int8Format>(config);
}

}  // namespace halftone
