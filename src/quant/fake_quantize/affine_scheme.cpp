#include "quant/fake_quantize/affine_scheme.h"

#include "base/errors.h"
#include "quant/weight/arithmetic/bits.h"
#include "quant/weight/arithmetic/fake_affine.h"

namespace halftone {
namespace {

/// int4_dynamic_linear's blocks, whatever the groups of the weight.
constexpr int64_t kInt4ActivationGroup = 32;

AffineScheme int4_scheme(const QuantConfig& config, const Int4WeightOnlyConfig& fields, c10::ScalarType dtype,
                         std::string_view layer) {
  if (fields.rounding == Int4Rounding::kSearch)
    fail(ErrorCode::kUnsupported,
         "{}: {} searches scales for weights that no longer change; train with Int4Rounding::kNearest", layer,
         config.describe());
  AffineScheme scheme{config, intx_rule(4, fields.symmetric, dtype), fields.group_size, 4, {}};
  if (fields.activations == Int4Activations::kInt8) scheme.activations = {true, true, kInt4ActivationGroup};
  return scheme;
}

}  // namespace

AffineScheme affine_scheme(const QuantConfig& config, c10::ScalarType dtype, std::string_view layer) {
  if (config.as<Int8WeightOnlyConfig>()) return {config, int8_rule(8, dtype), 0, 0, {}};
  if (const auto fields = config.as<Int8DynamicActivationInt8WeightConfig>())
    return {config, int8_rule(fields->weight_bits, dtype), 0, 0, {true, fields->symmetric_activations, 0}};
  if (const auto fields = config.as<Int4WeightOnlyConfig>())
    return int4_scheme(config, *fields, dtype, layer);
  if (const auto fields = config.as<IntxWeightOnlyConfig>())
    return {config, intx_rule(fields->bits, fields->symmetric, dtype), fields->group_size, fields->bits, {}};
  fail(ErrorCode::kUnsupported,
       "{}: {} has no fake quantization; quantization-aware training takes int8wo, int8dq, int4wo, "
       "int4wo-int8act and IntxWeightOnlyConfig",
       layer, config.describe());
}

Parts AffineScheme::parts(const at::Tensor& weight, const at::Tensor& scale,
                          const at::Tensor& zero_point) const {
  AffineScales scales{scale.to(at::kFloat).contiguous(), {}, group};
  if (zero_point.defined()) scales.zero_point = zero_point.to(at::kInt).contiguous();
  const at::Tensor q = quantize_with(weight, scales, rule);
  if (packed_bits == 0) return {{"weight", q}, {"scale", scales.scale.squeeze(1)}};
  Parts result{{"weight", pack_bits(q, packed_bits)}, {"scale", scales.scale}};
  if (!rule.symmetric) result.emplace_back("zero_point", zero_point.to(at::kChar));
  return result;
}

}  // namespace halftone
