// Weights as the kernels want them, through the packing cache: packed once in a process, or mapped from a
// checkpoint.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/int8_linear/pack.h"

namespace halftone::compiler {

at::Tensor packed_fp32(const at::Tensor& weight, int tile_n);
at::Tensor packed_int8(const at::Tensor& weight, const at::Tensor& scale, int weight_bits,
                       kernels::Int8Tile tile);
at::Tensor packed_int8_weight_only(const at::Tensor& weight, const at::Tensor& scale, int tile_n);
/// zero_point may be undefined.
at::Tensor packed_int4_weight_only(const at::Tensor& weight, const at::Tensor& scale,
                                   const at::Tensor& zero_point, int group, int tile_n);
at::Tensor packed_int4_dynamic(const at::Tensor& weight, const at::Tensor& scale,
                               const at::Tensor& zero_point, int group, int tile_n);
at::Tensor packed_fp8(const at::Tensor& weight, const at::Tensor& scale, int tile_n);

}  // namespace halftone::compiler
