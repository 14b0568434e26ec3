// halftone::quantize_per_tensor, halftone::dequantize_per_tensor, halftone::dequantize_per_channel and
// halftone::quantize_dequantize_dynamic: what reference graphs are made of.
#include "quant/ptq/quantize_op.h"

#include <ATen/TensorOperators.h>
#include <ATen/native/quantized/cpu/QuantUtils.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/round.h>
#include <torch/library.h>

#include <cmath>

#include "base/errors.h"
#include "graph/aten/dtype_text.h"

namespace halftone {
namespace {

constexpr const char* kQuantizeName = "halftone::quantize_per_tensor";
constexpr const char* kDequantizeName = "halftone::dequantize_per_tensor";
constexpr const char* kChannelsName = "halftone::dequantize_per_channel";
constexpr const char* kDynamicName = "halftone::quantize_dequantize_dynamic";

void check_float(const char* name, const at::Tensor& x) {
  if (x.scalar_type() == at::kFloat) return;
  fail(ErrorCode::kInvalidArgument, "{}: x must be float32, not {}", name, dtype_text(x.scalar_type()));
}

void check_bytes(const char* name, c10::ScalarType dtype) {
  if (dtype == at::kByte || dtype == at::kChar) return;
  fail(ErrorCode::kInvalidArgument, "{}: quantized values are uint8 or int8, not {}", name,
       dtype_text(dtype));
}

void check_scale(const char* name, double scale) {
  if (std::isfinite(scale) && static_cast<float>(scale) > 0) return;
  fail(ErrorCode::kInvalidArgument, "{}: the scale must be finite and above 0, not {}", name, scale);
}

void check_range(c10::ScalarType dtype, int64_t zero_point, int64_t least, int64_t largest) {
  const int64_t lowest = dtype == at::kByte ? 0 : -128, highest = dtype == at::kByte ? 255 : 127;
  if (least < lowest || largest > highest || least >= largest || zero_point < least || zero_point > largest)
    fail(ErrorCode::kInvalidArgument, "{}: zero point {} and range [{}, {}] do not fit {}", kQuantizeName,
         zero_point, least, largest, dtype_text(dtype));
}

void check_channels(const at::Tensor& q, const at::Tensor& scales, const at::Tensor& zero_points,
                    int64_t axis) {
  if (axis < 0 || axis >= q.dim())
    fail(ErrorCode::kInvalidArgument, "{}: there is no axis {} in {} dimensions", kChannelsName, axis,
         q.dim());
  if (scales.dim() != 1 || zero_points.dim() != 1 || scales.sym_size(0) != q.sym_size(axis) ||
      zero_points.sym_size(0) != q.sym_size(axis))
    fail(ErrorCode::kInvalidArgument, "{}: scales and zero points must be one for each element of axis {}",
         kChannelsName, axis);
}

/// As ATen's quantized tensors are: row-major or channels last, whatever view x is. Kernels of later
/// operators, and with them the last bits of sums, depend on it.
at::Tensor dense_like(const at::Tensor& x, c10::ScalarType dtype) {
  return at::empty_symint(x.sym_sizes(), x.options().dtype(dtype), x.suggest_memory_format());
}

void check_quantize(const at::Tensor& x, double scale, int64_t zero_point, int64_t quant_min,
                    int64_t quant_max, c10::ScalarType dtype) {
  check_float(kQuantizeName, x);
  check_bytes(kQuantizeName, dtype);
  check_scale(kQuantizeName, scale);
  check_range(dtype, zero_point, quant_min, quant_max);
}

at::Tensor quantize_cpu(const at::Tensor& x, double scale, int64_t zero_point, int64_t quant_min,
                        int64_t quant_max, c10::ScalarType dtype) {
  check_quantize(x, scale, zero_point, quant_min, quant_max, dtype);
  const float inverse = 1.0F / static_cast<float>(scale);
  // The zero point takes part in the rounding, as in ATen: halves go to the even byte. A tiny scale has an
  // infinite inverse, and 0 times that is NaN too.
  const at::Tensor steps = (x * inverse).add_(zero_point).round_();
  steps.masked_fill_(at::isnan(steps), quant_max).clamp_(quant_min, quant_max);
  return dense_like(x, dtype).copy_(steps);
}

at::Tensor quantize_meta(const at::Tensor& x, double scale, int64_t zero_point, int64_t quant_min,
                         int64_t quant_max, c10::ScalarType dtype) {
  check_quantize(x, scale, zero_point, quant_min, quant_max, dtype);
  return dense_like(x, dtype);
}

at::Tensor dequantize_cpu(const at::Tensor& q, double scale, int64_t zero_point) {
  check_bytes(kDequantizeName, q.scalar_type());
  check_scale(kDequantizeName, scale);
  return q.to(at::kFloat).sub_(zero_point).mul_(static_cast<float>(scale));
}

at::Tensor dequantize_meta(const at::Tensor& q, double scale, int64_t zero_point) {
  check_bytes(kDequantizeName, q.scalar_type());
  check_scale(kDequantizeName, scale);
  return at::empty_like(q, q.options().dtype(at::kFloat));
}

at::Tensor channels_cpu(const at::Tensor& q, const at::Tensor& scales, const at::Tensor& zero_points,
                        int64_t axis) {
  check_bytes(kChannelsName, q.scalar_type());
  check_channels(q, scales, zero_points, axis);
  std::vector<int64_t> along(static_cast<size_t>(q.dim()), 1);
  along[static_cast<size_t>(axis)] = -1;
  return q.to(at::kFloat)
      .sub_(zero_points.to(at::kFloat).view(along))
      .mul_(scales.to(at::kFloat).view(along));
}

at::Tensor channels_meta(const at::Tensor& q, const at::Tensor& scales, const at::Tensor& zero_points,
                         int64_t axis) {
  check_bytes(kChannelsName, q.scalar_type());
  check_channels(q, scales, zero_points, axis);
  return at::empty_like(q, q.options().dtype(at::kFloat));
}

at::Tensor dynamic_cpu(const at::Tensor& x, c10::ScalarType dtype, bool reduce_range) {
  check_float(kDynamicName, x);
  check_bytes(kDynamicName, dtype);
  if (x.numel() == 0) return at::empty_like(x);
  const auto [least, largest] = at::aminmax(x);
  const float low = least.item<float>(), high = largest.item<float>();
  if (!std::isfinite(low) || !std::isfinite(high)) return x.clone();
  const int lowest = dtype == at::kByte ? 0 : -128, highest = dtype == at::kByte ? 255 : 127;
  // ATen's own choice, so that numbers are those of quantize_per_tensor_dynamic.
  const auto chosen =
      quant_utils::ChooseQuantizationParams(low, high, lowest, highest, /*preserve_sparsity=*/false,
                                            /*force_scale_power_of_two=*/false, reduce_range);
  return dequantize_cpu(quantize_cpu(x, chosen.scale, chosen.zero_point, lowest, highest, dtype),
                        chosen.scale, chosen.zero_point);
}

at::Tensor dynamic_meta(const at::Tensor& x, c10::ScalarType dtype, bool reduce_range) {
  check_float(kDynamicName, x);
  check_bytes(kDynamicName, dtype);
  return at::empty_like(x);
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def(
      "quantize_per_tensor(Tensor x, float scale, int zero_point, int quant_min, int quant_max, ScalarType "
      "dtype) -> Tensor");
  m.def("dequantize_per_tensor(Tensor q, float scale, int zero_point) -> Tensor");
  m.def("dequantize_per_channel(Tensor q, Tensor scales, Tensor zero_points, int axis) -> Tensor");
  m.def("quantize_dequantize_dynamic(Tensor x, ScalarType dtype, bool reduce_range=False) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("quantize_per_tensor", quantize_cpu);
  m.impl("dequantize_per_tensor", dequantize_cpu);
  m.impl("dequantize_per_channel", channels_cpu);
  m.impl("quantize_dequantize_dynamic", dynamic_cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("quantize_per_tensor", quantize_meta);
  m.impl("dequantize_per_tensor", dequantize_meta);
  m.impl("dequantize_per_channel", channels_meta);
  m.impl("quantize_dequantize_dynamic", dynamic_meta);
}

}  // namespace

at::Tensor ops::quantize_per_tensor(const at::Tensor& x, double scale, int64_t zero_point, int64_t quant_min,
                                    int64_t quant_max, c10::ScalarType dtype) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(kQuantizeName, "").typed<decltype(quantize_cpu)>();
  return op.call(x, scale, zero_point, quant_min, quant_max, dtype);
}

at::Tensor ops::dequantize_per_tensor(const at::Tensor& q, double scale, int64_t zero_point) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(kDequantizeName, "").typed<decltype(dequantize_cpu)>();
  return op.call(q, scale, zero_point);
}

at::Tensor ops::dequantize_per_channel(const at::Tensor& q, const at::Tensor& scales,
                                       const at::Tensor& zero_points, int64_t axis) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(kChannelsName, "").typed<decltype(channels_cpu)>();
  return op.call(q, scales, zero_points, axis);
}

at::Tensor ops::quantize_dequantize_dynamic(const at::Tensor& x, c10::ScalarType dtype, bool reduce_range) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(kDynamicName, "").typed<decltype(dynamic_cpu)>();
  return op.call(x, dtype, reduce_range);
}

}  // namespace halftone
