// fp32_conv: convolution in single precision, channels last, on packed weights.
//
//   s[p][o] = Σ over taps t and input channels c of the group:  x[pixel of p at t][c] · w[o][c][t]
//   y[p][o] = activation(s[p][o] + bias[o] + residual[p][o])
//
// for every output pixel p and output channel o; the geometry is conv_shape.h's, with 1 to 3 dimensions,
// groups, stride, padding, dilation, transposed. The residual comes before the activation, as residual
// networks have it; a linear's comes after (epilogue.h).
//
// Error, with e = 2^-24 and K = taps · input channels of a group:
//   |s - exact| <= (K + 4) · e · Σ |x · w|                              all kernels but the Winograd ones
//   |s - exact| <= kWinograd4Error (2) · e · Σ_c max|x_c| · max|w_c|    over the patch that the output's tile
//                                                                       reads, and the 3x3 weights
// The order of a sum does not depend on the number of threads. NaN and infinities go where IEEE arithmetic
// takes them, with two exceptions: where a tap falls into the padding, a weight that is not finite may count
// as NaN or not at all; and Winograd kernels spread what is not finite over the tile (4x4 or 2x2 outputs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"
#include "kernels/conv/conv_activation.h"
#include "kernels/conv/conv_shape.h"

namespace halftone::kernels {

struct Fp32ConvProblem {
  ConvShape shape;
  /// False: only kernels that sum in the ordinary way, with their tighter error bound.
  bool winograd = true;
  /// True: the input's channels are not neighbours in memory (NCHW, as a user's image may come). Kernels that
  /// read vectors of channels refuse.
  bool strided_channels = false;
};

/// How a kernel computes, and how its weights are packed.
enum class ConvAlgorithm : uint32_t {
  kGemm = 1,       ///< tiles of pixels times panels of output channels
  kDepthwise = 2,  ///< vectors of channels of many small groups: 1, 2, 4 or 8 inputs and as many outputs
  kWinograd4 = 3,  ///< F(4x4, 3x3)
  kWinograd2 = 4,  ///< F(2x2, 3x3)
};

/// Far below the worst case (a product of norms), three times what any test has seen. Beside the
/// spread of the outputs, F(4x4) is about 7 times and F(2x2) twice as inexact as a plain sum of 256 channels.
inline constexpr double kWinograd4Error = 30;
inline constexpr double kWinograd2Error = 8;

struct Fp32ConvFunctions;  // kernels.h

struct Fp32ConvKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const Fp32ConvProblem&);
  ConvAlgorithm algorithm;
  int tile_n;  ///< output channels of a panel
  int rows;    ///< pixels of the tallest tile
  const Fp32ConvFunctions* functions;
};

/// Best first, scalar last (which takes everything).
std::span<const Fp32ConvKernel> fp32_conv_kernels();

/// The best kernel at `isa`. Throws kInvalidArgument for a bad shape. A kernel may be chosen for one batch
/// and run with another: every kernel that takes the shape computes any batch.
const Fp32ConvKernel& choose_fp32_conv(const Fp32ConvProblem& problem, Isa isa = active_isa());

/// Packing, made once, for blocks aligned to kPackedAlignment (packed_block.h). `w` is contiguous, as torch
/// has it:
///   convolution  [out_channels][in_channels / groups][depth][height][width]
///   transposed   [in_channels][out_channels / groups][depth][height][width]
/// A block says its version, its tile and its algorithm; it fits every kernel with the same tile and
/// algorithm, any batch and any size of image.
size_t fp32_conv_packed_bytes(const Fp32ConvKernel& kernel, const ConvShape& shape);
void pack_fp32_conv(const Fp32ConvKernel& kernel, const ConvShape& shape, const float* w, void* out);

/// Distances in elements.
struct ConvStrides {
  int64_t batch = 0;
  int64_t channel = 1;
  ConvExtent pixel{0, 0, 0};  ///< depth, height, width
};

/// Of an input in channels last whose neighbouring pixels are `pixel` apart: in_channels where it is dense,
/// more where it is a slice of the channels of a larger tensor.
ConvStrides channels_last_strides(const ConvShape& shape, int64_t pixel);

/// Borrowed for the call. `out` may be `residual` (same stride); nothing else may overlap.
struct Fp32ConvArgs {
  const float* x = nullptr;
  ConvStrides x_strides;
  const void* weights = nullptr;    ///< pack_fp32_conv
  const float* bias = nullptr;      ///< [out_channels], or none
  const float* residual = nullptr;  ///< [pixels][residual_stride], or none
  int64_t residual_stride = 0;
  ConvActivate activate;
  float* out = nullptr;    ///< [batch · out pixels][out_stride]
  int64_t out_stride = 0;  ///< at least out_channels
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

/// Scratch memory for one call; any alignment.
size_t fp32_conv_workspace_bytes(const Fp32ConvKernel& kernel, const ConvShape& shape, int threads);

/// Runs the kernel, split over the ParallelFor's threads. Allocates nothing. Throws kInvalidArgument when the
/// arguments do not fit, or when the kernel refuses the problem.
void fp32_conv(const Fp32ConvKernel& kernel, const ConvShape& shape, const Fp32ConvArgs& args,
               ParallelFor& parallel_for);

}  // namespace halftone::kernels
