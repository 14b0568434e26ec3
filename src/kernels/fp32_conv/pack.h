// Layout of fp32_conv's packed weights, for its drivers. After a PackedHeader:
//   gemm       [group][panel][tap][channel][tile_n]; taps of a transposed convolution phase by phase
//   depthwise  [tap][input channel of the group][output channels, padded to tile_n]
//   winograd   [(m + 2)²][panel][channel][tile_n]
// What is beyond the last output channel is zero.
#pragma once

#include "kernels/common/packed_block.h"
#include "kernels/fp32_conv/fp32_conv.h"

namespace halftone::kernels {

inline constexpr uint32_t kFp32ConvPackVersion = 1;

/// m of F(m x m, 3x3); 0 for other algorithms.
constexpr int winograd_outputs(ConvAlgorithm algorithm) {
  return algorithm == ConvAlgorithm::kWinograd4 ? 4 : algorithm == ConvAlgorithm::kWinograd2 ? 2 : 0;
}

/// The weights of an opened block. Throws kInvalidArgument unless `block` was packed for this kernel's
/// algorithm and tile and for this shape's channels, groups and taps.
const float* open_fp32_conv_packed(const Fp32ConvKernel& kernel, const ConvShape& shape, const void* block);

/// The transform of 3 weights to m + 2: u = G g. In double: weights are transformed once and rounded once.
void winograd_weights(int m, const double g[3], double* u);

}  // namespace halftone::kernels
