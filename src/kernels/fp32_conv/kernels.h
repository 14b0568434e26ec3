// The functions that fp32_conv's drivers need from an instruction set, and those of each. Contract:
// fp32_conv.h.
#pragma once

#include "kernels/fp32_conv/fp32_conv.h"

namespace halftone::kernels {

/// A tile of pixels times one panel, for some taps and channels:
///   sums[r][o] = (add ? sums[r][o] : 0) + Σ_t Σ_c rows[t][r][channel + c] · panel[t][c][o]
struct Fp32ConvStep {
  const float* const* rows;  ///< [taps][rows_stride]; for each tap the tile's `count` pixels
  int64_t rows_stride;
  int count;  ///< 1 to the kernel's rows
  int64_t taps;
  int64_t channel;     ///< the first
  int64_t channels;    ///< how many
  const float* panel;  ///< [taps][tap_stride], of which [channels][tile_n] is read
  int64_t tap_stride;
  bool add;
  float* sums;  ///< [count][sums_stride]
  int64_t sums_stride;
  const float* next;  ///< only a hint: what to fetch meanwhile,
  int64_t next_step;  ///< so many bytes for each channel of each tap
};

/// Where finished pixels go; pointers begin at the first of `channels` channels.
struct Fp32ConvTarget {
  const int64_t* pixels;  ///< the output index of each
  int64_t channels;
  const float* bias;      ///< or nullptr
  const float* residual;  ///< or nullptr
  int64_t residual_stride;
  float* out;
  int64_t out_stride;
  ConvActivate activate;
};

/// Sums of `count` pixels: channel o of pixel r is sums[o / tile_n · panel_stride + r · tile_n + o % tile_n].
struct Fp32ConvFinish {
  const float* sums;
  int64_t panel_stride;
  int64_t tile_n;
  int64_t count;
  Fp32ConvTarget target;
};

/// y[r][o] = epilogue(Σ_t Σ_c rows[t][r][first channel of o's group + c] · weights[t][c][o]), c < width
struct Fp32DepthwiseStep {
  const float* const* rows;  ///< [taps][rows_stride]
  int64_t rows_stride;
  int64_t count;
  int64_t taps;
  int64_t width;         ///< channels of a group, in and out: 1, 2, 4 or 8
  const float* weights;  ///< [taps][width][weights_stride]; whole vectors can be read
  int64_t weights_stride;
  Fp32ConvTarget target;
};

/// One Winograd tile's input: rows[i] are the pixels of the (m + 2)² patch; v[i · v_stride + c] becomes the
/// transformed patch.
struct Fp32WinogradInput {
  const float* const* rows;
  int64_t channels;  ///< a multiple of 16
  float* v;
  int64_t v_stride;
};

/// One tile's products, m[i · m_stride + o], to the m² output pixels; a pixel of -1 lies outside.
struct Fp32WinogradOutput {
  const float* m;
  int64_t m_stride;
  Fp32ConvTarget target;
};

struct Fp32ConvFunctions {
  void (*multiply)(const Fp32ConvStep&);
  void (*finish)(const Fp32ConvFinish&);
  void (*depthwise)(const Fp32DepthwiseStep&);
  void (*winograd4_input)(const Fp32WinogradInput&);
  void (*winograd4_output)(const Fp32WinogradOutput&);
  void (*winograd2_input)(const Fp32WinogradInput&);
  void (*winograd2_output)(const Fp32WinogradOutput&);
};

// AVX-512 has only a multiplication of its own: the rest is bound by memory.
void conv_finish_avx2(const Fp32ConvFinish& finish);
void conv_depthwise_avx2(const Fp32DepthwiseStep& step);
void conv_winograd4_input_avx2(const Fp32WinogradInput& input);
void conv_winograd4_output_avx2(const Fp32WinogradOutput& output);
void conv_winograd2_input_avx2(const Fp32WinogradInput& input);
void conv_winograd2_output_avx2(const Fp32WinogradOutput& output);

/// Panels of all scalar and AVX2 functions.
inline constexpr int kFp32ConvTile = 16;
inline constexpr int kFp32ConvTile512 = 32;

extern const Fp32ConvFunctions kFp32ConvScalar;
extern const Fp32ConvFunctions kFp32ConvAvx2;
extern const Fp32ConvFunctions kFp32ConvAvx512;
/// The same source through SIMDe, linked only into tests.
extern const Fp32ConvFunctions kFp32ConvAvx512Emulated;

}  // namespace halftone::kernels
