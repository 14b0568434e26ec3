// Rewrites of a graph before it is compiled, for options that are off.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/graph_module.h"

namespace halftone::baseline {

/// fuse_int_mm_with_mul off: every halftone::int8_linear becomes steps of their own: quantized rows, an
/// integer product, then scales and bias as floating-point operators, rounded in the kernel's order. `notes`
/// gets a sentence on what was done and on each linear that stays.
void separate_int_products(GraphModule& module, std::vector<std::string>& notes);

/// mixed_mm off: linears whose weights alone are low-bit get the weight in float32, and multiply in float32.
void dequantize_weights(GraphModule& module, std::vector<std::string>& notes);

/// halftone::int_mm(Tensor q, Tensor zero_point, Tensor weight) -> Tensor: for rows that
/// halftone::quantize_rows made, q [..., k], zero_point [rows] and weight int8 [n, k],
///   sum over k of (q - zero_point) · weight    as int32 [..., n], exact.
void register_int_mm();

}  // namespace halftone::baseline
