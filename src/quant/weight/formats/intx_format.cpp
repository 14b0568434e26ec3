// IntxWeightOnlyConfig.
#include "quant/weight/arithmetic/affine.h"
#include "quant/weight/arithmetic/bits.h"
#include "quant/weight/formats/formats.h"
#include "quant/weight/linear_format.h"
#include "quant/weight/ops.h"

namespace halftone {
namespace {

class IntxFormat final : public WeightFormat {
 public:
  explicit IntxFormat(const IntxWeightOnlyConfig& config) : config_(config) {}

  Parts quantize(const at::Tensor& weight) const override { return quantize_typed(weight, at::kFloat); }

  Parts quantize_typed(const at::Tensor& weight, c10::ScalarType dtype) const override {
    const int64_t group = config_.group_size == 0 ? weight.size(1) : config_.group_size;
    const AffineParts parts =
        quantize_affine(weight, group, intx_rule(config_.bits, config_.symmetric, dtype));
    Parts result{{"weight", pack_bits(parts.q, config_.bits)}, {"scale", parts.scale}};
    if (!config_.symmetric) result.emplace_back("zero_point", parts.zero_point);
    return result;
  }

  at::Tensor dequantize(const QuantizedWeight& weight) const override {
    return dequantize_affine(unpack_bits(weight.part("weight"), config_.bits, weight.sizes[1]),
                             weight.part("scale"), zero_point_of(weight).value_or(at::Tensor()),
                             config_.group_size);
  }

  at::Tensor linear(const at::Tensor& x, const QuantizedWeight& weight,
                    const std::optional<at::Tensor>& bias) const override {
    return ops::intx_linear(x, weight.part("weight"), weight.part("scale"), zero_point_of(weight), bias,
                            config_.bits, weight.sizes[1], config_.group_size);
  }

  FormatOp linear_op(const QuantizedWeight& weight) const override {
    return {"halftone::intx_linear",
            {{"bits", config_.bits}, {"in_features", weight.sizes[1]}, {"group_size", config_.group_size}}};
  }

 private:
  IntxWeightOnlyConfig config_;
};

QuantConfig intx_config(const Node& node) {
  return IntxWeightOnlyConfig{static_cast<int>(number_of(node, "bits", 4)),
                              static_cast<int>(number_of(node, "group_size", 0)),
                              !is_given(node, "zero_point")};
}

}  // namespace

const LinearFormat& intx_linear_format() {
  static const LinearFormat format{
      .target = "halftone::intx_linear", .config = intx_config, .weights_per_column = 0};
  return format;
}

std::shared_ptr<const WeightFormat> make_format(const IntxWeightOnlyConfig& config) {
  return std::make_shared<IntxFormat>(config);
}

}  // namespace halftone
