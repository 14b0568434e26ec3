// int4wo.
#include "kernels/common/int4_weights.h"
#include "quant/weight/affine.h"
#include "quant/weight/bits.h"
#include "quant/weight/formats.h"
#include "quant/weight/ops.h"

namespace halftone {
namespace {

class Int4Format final : public WeightFormat {
 public:
  explicit Int4Format(const Int4WeightOnlyConfig& config) : config_(config) {}

  std::string refuse(int64_t, int64_t) const override {
    const char* reason = kernels::refuse_int4_group(config_.group_size);
    return reason != nullptr ? reason : "";
  }

  Parts quantize(const at::Tensor& weight) const override { return quantize_typed(weight, at::kFloat); }

  Parts quantize_typed(const at::Tensor& weight, c10::ScalarType dtype) const override {
    AffineRule rule = intx_rule(4, config_.symmetric, dtype);
    rule.search = config_.rounding == Int4Rounding::kSearch;
    const AffineParts parts = quantize_affine(weight, config_.group_size, rule);
    Parts result{{"weight", pack_bits(parts.q, 4)}, {"scale", parts.scale}};
    if (!config_.symmetric) result.emplace_back("zero_point", parts.zero_point);
    return result;
  }

  at::Tensor dequantize(const QuantizedWeight& weight) const override {
    return dequantize_affine(unpack_bits(weight.part("weight"), 4, weight.sizes[1]), weight.part("scale"),
                             zero_point_of(weight).value_or(at::Tensor()), config_.group_size);
  }

  at::Tensor linear(const at::Tensor& x, const QuantizedWeight& weight,
                    const std::optional<at::Tensor>& bias) const override {
    return ops::int4_linear(x, weight.part("weight"), weight.part("scale"), zero_point_of(weight), bias,
                            config_.group_size, quantizes_activations(), weight.sizes[1]);
  }

  bool has_embedding() const override { return true; }

  at::Tensor embedding(const at::Tensor& indices, const QuantizedWeight& weight) const override {
    return ops::int4_embedding(indices, weight.part("weight"), weight.part("scale"), zero_point_of(weight),
                               config_.group_size, weight.dtype, weight.sizes[1]);
  }

  FormatOp embedding_op(const QuantizedWeight& weight) const override {
    return with_inputs(
        {"halftone::int4_embedding", {{"group_size", config_.group_size}, {"dtype", weight.dtype}}}, weight);
  }

  FormatOp linear_op(const QuantizedWeight& weight) const override {
    return with_inputs(
        {"halftone::int4_linear",
         {{"group_size", config_.group_size}, {"quantize_activations", quantizes_activations()}}},
        weight);
  }

 private:
  /// Half a byte is left over where the number of inputs is odd: only then the operator must be told it.
  static FormatOp with_inputs(FormatOp op, const QuantizedWeight& weight) {
    if (weight.sizes[1] % 2 != 0) op.constants.push_back({"in_features", weight.sizes[1]});
    return op;
  }

  bool quantizes_activations() const { return config_.activations == Int4Activations::kInt8; }

  Int4WeightOnlyConfig config_;
};

}  // namespace

std::shared_ptr<const WeightFormat> make_format(const Int4WeightOnlyConfig& config) {
  return std::make_shared<Int4Format>(config);
}

}  // namespace halftone
