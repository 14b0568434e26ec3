#include "quant/weight/arithmetic/float8.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>

#include <limits>

#include "graph/aten/aten_parallel_for.h"
#include "kernels/fp8_linear/float8.h"

namespace halftone {
namespace {

constexpr kernels::Float8Format kFormat = kernels::Float8Format::kE4m3fn;

void encode_scaled(const at::Tensor& rows, const float* scale, int64_t scale_stride, at::Tensor& q) {
  const int64_t n = rows.size(0), k = rows.size(1);
  const float* from = rows.const_data_ptr<float>();
  auto* to = static_cast<uint8_t*>(q.mutable_data_ptr());
  AtenParallelFor parallel_for;
  parallel_for.run(n, [&](int64_t row, int) {
    const float s = scale[row * scale_stride];
    for (int64_t i = row * k; i < (row + 1) * k; ++i)
      to[i] = kernels::float8_from_float(from[i] / s, kFormat);
  });
}

}  // namespace

Float8Parts quantize_float8(const at::Tensor& rows, bool per_tensor) {
  const int64_t n = rows.size(0), k = rows.size(1);
  Float8Parts parts{at::empty({n, k}, at::kFloat8_e4m3fn), at::empty({per_tensor ? 1 : n}, at::kFloat)};
  const float* w = rows.const_data_ptr<float>();
  float* scale = parts.scale.mutable_data_ptr<float>();
  if (per_tensor) {
    scale[0] = kernels::float8_row_scale(w, n * k);
  } else {
    for (int64_t row = 0; row < n; ++row) scale[row] = kernels::float8_row_scale(w + row * k, k);
  }
  encode_scaled(rows, scale, per_tensor ? 0 : 1, parts.q);
  return parts;
}

at::Tensor dequantize_float8(const at::Tensor& q, const at::Tensor& scale) {
  return q.to(at::kFloat).mul(scale.unsqueeze(1));
}

at::Tensor round_to_float8(const at::Tensor& rows) {
  const at::Tensor plain = rows.contiguous();
  const Float8Parts parts = quantize_float8(plain, true);
  if (parts.scale.isnan().item<bool>()) return at::full_like(plain, std::numeric_limits<double>::quiet_NaN());
  return dequantize_float8(parts.q, parts.scale);
}

}  // namespace halftone
