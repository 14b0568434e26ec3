// The operators of fake quantization as functions, through the dispatcher: quantized and restored at once, in
// floating point, with straight-through gradients. Their arguments are those of halftone/quant/qat.h.
//
//   halftone::fake_quantize(Tensor x, Tensor scale, Tensor? zero_point=None, *, int group_size=0, int quant_min,
//                           int quant_max, float scale_gradient=1., ScalarType? arithmetic=None) -> Tensor
//   halftone::fake_quantize_rows(Tensor x, *, bool symmetric=False, int group_size=0) -> Tensor
//   halftone::affine_scales(Tensor low, Tensor high, *, int quant_min, int quant_max, bool symmetric,
//                           float smallest_scale, ScalarType? scale_dtype=None) -> (Tensor, Tensor)
//
// `arithmetic`: the type that 1/scale and the product are rounded to; none: float32. affine_scales gives
// scales and int8 zero points (zeros where symmetric) for ranges; it has no gradient. The backward of
// fake_quantize is two operators, halftone::fake_quantize_backward and
// halftone::fake_quantize_scale_backward, so that compiled training can hold them.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

#include "quant/weight/arithmetic/affine.h"

namespace halftone::ops {

/// What is constant in a call of fake_quantize.
struct FakeGrid {
  int64_t group_size = 0;
  int64_t quant_min = -128;
  int64_t quant_max = 127;
  std::optional<c10::ScalarType> arithmetic = std::nullopt;
};

at::Tensor fake_quantize(const at::Tensor& x, const at::Tensor& scale,
                         const std::optional<at::Tensor>& zero_point, const FakeGrid& grid,
                         double scale_gradient = 1);
at::Tensor fake_quantize_rows(const at::Tensor& x, bool symmetric, int64_t group_size);
std::tuple<at::Tensor, at::Tensor> affine_scales(const at::Tensor& low, const at::Tensor& high,
                                                 const AffineRule& rule);

}  // namespace halftone::ops
