// int8_conv: convolution of 8-bit activations and weights with one scale for each tensor and channel (static
// quantization), exact 32-bit sums and the whole epilogue; 1d to 3d, groups, depthwise, dilation, transposed.
//
//   x  u8, channels last, zero point zx; pixels outside of the image count as zx
//   w  s8 for each output channel, zero point 0, packed once (pack.h)
//   a  = Σ (qx - zx) · qw                                exact, in 32 bits
//   f  = fma(float(a), multiplier[oc], offset[oc])
//   f  = fma(float(qr - zr), residual_multiplier, f)     if there is a residual
//   y  = clamp(rint(f) + zy, lo, hi)                     u8 output; rint rounds to nearest even;
//                                                        relu is lo = max(lo, zy)
//   y  = f < lo ? lo : f > hi ? hi : f                   fp32 output
//
// The same bits on every instruction set. With int8_conv_factors, multiplier = sx · sw[oc] / sy and offset =
// bias[oc] / sy for u8 output, sx · sw[oc] and bias[oc] for fp32 output, so f is y in units of sy, or y
// itself. f that is NaN (only possible for infinite factors) gives hi for u8 output and NaN for fp32.
//
// Exactness. No product is ever summed in 16 bits if the sum could saturate:
//   - avx2, depth d >= 1: vpmaddubsw adds two products, d results are added in 16 bits; packing proves for
//     every panel that its weights allow it (pack.h). Weights or activations of 7 bits always do for d = 1,
//     both for 2.
//   - avx2, other panels: as int8_linear.h, activations minus 128 are split into |x| and sign mask.
//   - avx512vnni: vpdpbusd sums in 32 bits. depthwise: 16-bit operands, vpmaddwd sums in 32 bits.
// A sum fits 32 bits because a channel has at most kInt8ConvMaxK weights; intermediate sums may wrap, the
// result does not.
//
// A linear with static quantization is the 1x1 convolution of m pixels: shape.batch = m, in and out 1x1x1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"
#include "kernels/int8_conv/pack.h"

namespace halftone::kernels {

/// Weights of one output channel: 255 · 128 · k < 2³¹.
inline constexpr int64_t kInt8ConvMaxK = 65793;

struct Int8ConvBlock;
struct Int8DepthwiseBlock;

struct Int8ConvKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const Int8ConvProblem&);
  Int8ConvTile tile;  ///< how weights must be packed
  int rows;           ///< output pixels of the tallest block
  /// Where not null, activations are rewritten first by this function (kernels.h), unless the weights are so
  /// small that packing proved vpmaddubsw exact for them.
  void (*split_row)(const uint8_t* x, int64_t k, uint8_t* out);
  /// One block of pixels times one panel, epilogue included. Null for depthwise kernels.
  void (*compute)(const Int8ConvBlock& block);
  /// A run of pixels, all channels. Null for the others.
  void (*depthwise)(const Int8DepthwiseBlock& block);
};

/// Best first, scalar last.
std::span<const Int8ConvKernel> int8_conv_kernels();

/// Throws kInvalidArgument for a problem that no instruction set can take: as check_conv_shape, bits other
/// than 7 and 8, more than kInt8ConvMaxK weights of a channel.
void check_int8_conv_problem(const Int8ConvProblem& problem);

/// The best kernel of the table at `isa`. Throws as check_int8_conv_problem does.
const Int8ConvKernel& choose_int8_conv(const Int8ConvProblem& problem, Isa isa = active_isa());

/// Writes multiplier [oc] and offset [oc]. `out_scale` is 0 for fp32 output. `bias` may be null. Computed in
/// double, rounded once. Throws kInvalidArgument for scales that are negative or not finite, naming the
/// channel.
void int8_conv_factors(float x_scale, std::span<const float> weight_scale, const float* bias, float out_scale,
                       float* multiplier, float* offset);

/// What is convolved. All pointers borrowed, of any alignment; strides count elements.
struct Int8ConvArgs {
  const uint8_t* x = nullptr;  ///< [batch][in][x_stride]
  int64_t x_stride = 0;        ///< from one pixel to the next, at least in_channels
  int32_t x_zero_point = 0;    ///< 0 to 255, with activation_bits 7 to 127

  const void* weights = nullptr;      ///< made by pack_int8_conv for kernel.tile
  const float* multiplier = nullptr;  ///< [oc]
  const float* offset = nullptr;      ///< [oc]

  const uint8_t* residual = nullptr;  ///< [batch][out][residual_stride], or null
  int64_t residual_stride = 0;
  int32_t residual_zero_point = 0;
  float residual_multiplier = 0.0f;  ///< sr / sy, or sr for fp32 output

  /// Exactly one of `out` and `out_f32` is set: [batch][out][out_stride]. It may be `residual`, not x.
  uint8_t* out = nullptr;
  float* out_f32 = nullptr;
  int64_t out_stride = 0;
  int32_t out_zero_point = 0;
  int32_t lo = 0, hi = 255;  ///< of u8 output, 0 <= lo <= hi <= 255
  float lo_f32 = -std::numeric_limits<float>::infinity();
  float hi_f32 = std::numeric_limits<float>::infinity();

  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

/// Scratch memory for one call with up to `threads` threads; any alignment.
size_t int8_conv_workspace_bytes(const Int8ConvKernel& kernel, const Int8ConvProblem& problem, int threads);

/// Runs the kernel, split over pixels and output channels. Allocates nothing. Throws kInvalidArgument when
/// the arguments do not fit the problem: weights of another convolution or tile, strides below the channels,
/// zero points and limits out of range, no or two outputs, a workspace that is too small. An empty batch does
/// nothing.
void int8_conv(const Int8ConvKernel& kernel, const Int8ConvProblem& problem, const Int8ConvArgs& args,
               ParallelFor& parallel_for);

}  // namespace halftone::kernels
