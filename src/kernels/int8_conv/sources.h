// The input pixels of an output pixel: pointers for each tap, or copied patches.
//
// A transposed convolution is cut into phases: outputs at the same distance from the last multiple of the
// stride are reached by the same taps, so each phase is a convolution of stride 1 with some of the taps.
#pragma once

#include <cstdint>

#include "kernels/conv/conv_shape.h"

namespace halftone::kernels {

/// One dimension of a phase. Output j of out_count lies at out_first + j · out_step; its tap number i of
/// `taps` is the kernel's tap_first + i · tap_step and reads the input at j · in_step + base + i · base_step.
struct Int8ConvAxis {
  int64_t out_first = 0, out_step = 1, out_count = 1;
  int64_t in_step = 1;
  int64_t tap_first = 0, tap_step = 1, taps = 1;
  int64_t base = 0, base_step = 1;
};

struct Int8ConvPhase {
  Int8ConvAxis axis[kConvDims];

  int64_t pixels(int64_t batch) const {
    return batch * axis[0].out_count * axis[1].out_count * axis[2].out_count;
  }
  int64_t taps() const { return axis[0].taps * axis[1].taps * axis[2].taps; }
};

/// 1, or for transposed convolutions as many as strides (and outputs) allow.
int64_t int8_conv_phases(const ConvShape& shape);
Int8ConvPhase int8_conv_phase(const ConvShape& shape, int64_t index);

/// The kernel's number of each of the phase's taps.
void list_taps(const ConvShape& shape, const Int8ConvPhase& phase, int32_t* tap);

/// The input in memory.
struct Int8ConvInput {
  const uint8_t* x = nullptr;
  int64_t stride = 0;             ///< bytes from one pixel to the next
  const uint8_t* zero = nullptr;  ///< a pixel's worth of what lies outside
};

/// For pixels [first, first + count) of the phase: pixel[i] in the output and rows[t * rows_stride + i] for
/// each of the phase's taps.
void point_at_rows(const ConvShape& shape, const Int8ConvPhase& phase, const Int8ConvInput& input,
                   int64_t first, int count, int64_t rows_stride, const uint8_t** rows, int64_t* pixel);

/// The same for one output pixel of any convolution and all of its taps: rows[t].
void point_at_taps(const ConvShape& shape, const Int8ConvInput& input, int64_t pixel, const uint8_t** rows);

/// For pixels [first, first + count): [tap][channels] bytes each, at patches + i · patch_stride. The bytes
/// behind `readable` are not read. Less than kPatchSlack bytes behind each patch are
/// written too.
struct Int8ConvPatches {
  uint8_t* patches = nullptr;
  int64_t patch_stride = 0;
  int64_t channels = 0;
  const uint8_t* readable = nullptr;  ///< the end of the input
};
inline constexpr int64_t kPatchSlack = 32;
void copy_patches(const ConvShape& shape, const Int8ConvInput& input, int64_t first, int count,
                  const Int8ConvPatches& to);

}  // namespace halftone::kernels
