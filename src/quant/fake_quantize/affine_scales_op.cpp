// halftone::affine_scales: the formats' scales for ranges that were observed.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "base/errors.h"
#include "quant/fake_quantize/operators.h"
#include "quant/weight/arithmetic/fake_affine.h"

namespace halftone {
namespace {

using OptionalType = std::optional<c10::ScalarType>;
using TwoTensors = std::tuple<at::Tensor, at::Tensor>;
constexpr const char* kScalesName = "halftone::affine_scales";

void check_scales(const at::Tensor& low, const at::Tensor& high, int64_t quant_min, int64_t quant_max,
                  double smallest_scale) {
  if (low.scalar_type() != at::kFloat || high.scalar_type() != at::kFloat || low.dim() != high.dim())
    fail(ErrorCode::kInvalidArgument, "{}: low and high must be float32, of the same sizes", kScalesName);
  if (quant_min < -128 || quant_max > 127 || quant_min >= quant_max)
    fail(ErrorCode::kInvalidArgument, "{}: integers from {} to {}; they must be in [-128, 127], at least two",
         kScalesName, quant_min, quant_max);
  if (!(smallest_scale > 0))
    fail(ErrorCode::kInvalidArgument, "{}: the smallest scale must be above zero", kScalesName);
}

TwoTensors scales_cpu(const at::Tensor& low, const at::Tensor& high, int64_t quant_min, int64_t quant_max,
                      bool symmetric, double smallest_scale, OptionalType scale_dtype) {
  check_scales(low, high, quant_min, quant_max, smallest_scale);
  if (low.sizes() != high.sizes())
    fail(ErrorCode::kInvalidArgument, "{}: low and high have different sizes", kScalesName);
  AffineRule rule;
  rule.low = static_cast<int>(quant_min);
  rule.high = static_cast<int>(quant_max);
  rule.symmetric = symmetric;
  rule.smallest_scale = static_cast<float>(smallest_scale);
  rule.scale_type = scale_dtype.value_or(at::kFloat);
  AffineParts parts = halftone::affine_scales(low.contiguous(), high.contiguous(), rule);
  if (symmetric) parts.zero_point = at::zeros(low.sizes(), at::kChar);
  return {parts.scale, parts.zero_point};
}

TwoTensors scales_meta(const at::Tensor& low, const at::Tensor& high, int64_t quant_min, int64_t quant_max,
                       bool, double smallest_scale, OptionalType) {
  check_scales(low, high, quant_min, quant_max, smallest_scale);
  return {at::empty_symint(low.sym_sizes(), low.options()),
          at::empty_symint(low.sym_sizes(), low.options().dtype(at::kChar))};
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def(
      "affine_scales(Tensor low, Tensor high, *, int quant_min, int quant_max, bool symmetric, float "
      "smallest_scale, ScalarType? scale_dtype=None) -> (Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("affine_scales", scales_cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("affine_scales", scales_meta);
}

}  // namespace

TwoTensors ops::affine_scales(const at::Tensor& low, const at::Tensor& high, const AffineRule& rule) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(kScalesName, "").typed<decltype(scales_cpu)>();
  return op.call(low, high, rule.low, rule.high, rule.symmetric, rule.smallest_scale, rule.scale_type);
}

}  // namespace halftone
