// Plain weights as the kernels want them, through the packing cache: packed once in a process, or mapped from
// a checkpoint. For the operators here and for the compiler, so that both share one block.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <string_view>
#include <vector>

#include "kernels/int8_linear/pack.h"

namespace halftone {

/// What a block is packed from, and what it is cached by.
struct PackSource {
  std::string_view kind;          ///< of the layout; a literal
  std::vector<at::Tensor> parts;  ///< as stored
  int64_t n = 0;
  int64_t k = 0;
  /// Rows [first, first + count) as int8 [count, k] (for fp32: float32), contiguous; called for all of them
  /// if there is no block yet, for a few where a stored block is checked.
  c10::function_ref<at::Tensor(int64_t first, int64_t count)> values;
  at::Tensor scale = {};       ///< float32 [n] or [n, groups]
  at::Tensor zero_point = {};  ///< int8 or float32 [n, groups], or undefined
};

/// Reads values only.
at::Tensor packed_fp32(const PackSource& source, int tile_n);
at::Tensor packed_int8_weight_only(const PackSource& source, int tile_n);
at::Tensor packed_int4_weight_only(const PackSource& source, int group, int tile_n);
at::Tensor packed_int4_dynamic(const PackSource& source, int group, int tile_n);
/// weight int8 [n, k], scale float32 [n].
at::Tensor packed_int8(const at::Tensor& weight, const at::Tensor& scale, int weight_bits,
                       kernels::Int8Tile tile);
/// weight float8 e4m3fn or e5m2 [n, k], scale float32 [n] or [1].
at::Tensor packed_fp8(const at::Tensor& weight, const at::Tensor& scale, int tile_n);
/// weight bfloat16 [n, k].
at::Tensor packed_bf16(const at::Tensor& weight, int tile_n);

}  // namespace halftone
