// The arguments of int8_conv's kernels, and the kernels, one file for each instruction set. Contract:
// int8_conv.h.
#pragma once

#include "kernels/int8_conv/int8_conv.h"

namespace halftone::kernels {

/// Where and how a block of pixels is finished; pointers are for the block's first column and padded to whole
/// panels.
struct Int8ConvOutput {
  const int32_t* start = nullptr;  ///< -zx · Σ qw: the sums begin here
  const float* multiplier = nullptr;
  const float* offset = nullptr;
  const int64_t* pixel = nullptr;  ///< [count] of the output
  int64_t column = 0;              ///< of the output, for the first column
  int columns = 0;                 ///< that exist
  float top = 0.0f;                ///< hi - out_zero_point
  const Int8ConvArgs* args = nullptr;
};

/// A block of output pixels times one panel.
struct Int8ConvBlock {
  const uint8_t* const* rows = nullptr;  ///< [taps][rows_stride]: where each pixel's channels of a tap begin
  int64_t rows_stride = 0;
  int count = 0;  ///< pixels in the block
  /// The taps that count, by their place in the panel; transposed convolutions skip some.
  const int32_t* tap = nullptr;
  int64_t taps = 0;
  int64_t quads = 0;              ///< of a tap
  const int8_t* panel = nullptr;  ///< aligned to 64
  int depth = 0;                  ///< of the panel, see pack.h
  // Quads that are multiplied once more, see pack.h.
  int extras = 0;
  const Int8ExtraQuad* extra_quads = nullptr;
  const int8_t* extra_weights = nullptr;
  bool split = false;  ///< rows are |x - 128| and mask, see kSplitFront
  /// What to fetch meanwhile, a line for each of the block's taps and rows. Only a hint; it may point past
  /// the weights.
  const int8_t* next = nullptr;
  int64_t next_lines = 0;
  Int8ConvOutput out;
};

/// A run of output pixels of a depthwise convolution, all channels.
struct Int8DepthwiseBlock {
  const uint8_t* const* rows = nullptr;  ///< [count][2 · pairs]; a tap too many points to anything readable
  int count = 0;
  int64_t pairs = 0;
  const int8_t* panels = nullptr;
  int64_t panel_bytes = 0;
  Int8ConvOutput out;  ///< columns are all channels
};

/// Bytes in front of split rows: an integer to be added to a row's sums, Σ |x - 128| where x < 128.
inline constexpr int64_t kSplitFront = 8;

/// Writes a split row: the integer and, for each quad, |x - 128| and the mask (-1 if x < 128), four bytes
/// each. `out` points behind the front; k is padded to quads with |x - 128| = 0.
void int8_split_row_avx2(const uint8_t* x, int64_t k, uint8_t* out);

void int8_conv_scalar(const Int8ConvBlock& block);
void int8_depthwise_scalar(const Int8DepthwiseBlock& block);

void int8_conv_avx2(const Int8ConvBlock& block);
void int8_depthwise_avx2(const Int8DepthwiseBlock& block);

void int8_conv_avx512vnni(const Int8ConvBlock& block);
/// The same source through SIMDe, linked only into tests: machines without AVX-512 check its results too.
void int8_conv_avx512vnni_emulated(const Int8ConvBlock& block);

}  // namespace halftone::kernels
