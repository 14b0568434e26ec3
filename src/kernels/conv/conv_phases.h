// The pixels of a convolution's output, and where each of their taps reads: what the kernels of every type
// walk.
//
// A convolution has one phase, all pixels with all taps. A transposed one with stride s has s phases in each
// dimension: outputs whose positions have the same remainder by s meet the same taps, and every tap belongs
// to exactly one phase. Within a phase both kinds are the same: output i of the phase reads, at its j-th tap,
// the input at in_first + i · in_step + j · in_tap_step.
#pragma once

#include "kernels/conv/conv_shape.h"

namespace halftone::kernels {

struct ConvPhase {
  ConvExtent first{}, step{}, count{};  ///< output positions first + i · step, i < count
  ConvExtent tap_first{}, tap_step{}, taps{};
  ConvExtent in_first{}, in_step{}, in_tap_step{};
  int64_t tap_offset = 0;  ///< taps of the phases before

  int64_t tap_count() const { return taps[0] * taps[1] * taps[2]; }
  int64_t pixels() const { return count[0] * count[1] * count[2]; }  ///< of one image; may be 0
};

int64_t conv_phase_count(const ConvShape& shape);

/// Phases [0, conv_phase_count).
ConvPhase conv_phase(const ConvShape& shape, int64_t index);

/// Steps through the pixels of a phase, image after image, in the order of memory.
class ConvPixelWalk {
 public:
  /// Begins at `pixel` of batch · phase.pixels().
  ConvPixelWalk(const ConvShape& shape, const ConvPhase& phase, int64_t pixel);

  int64_t image() const { return image_; }
  /// Where the first tap reads, may lie outside of the input.
  int64_t in(int dim) const { return phase_.in_first[dim] + at_[dim] * phase_.in_step[dim]; }
  /// The pixel's index in the output, of all images.
  int64_t out() const {
    int64_t index = image_;
    for (int d = 0; d < kConvDims; ++d) index = index * out_[d] + phase_.first[d] + at_[d] * phase_.step[d];
    return index;
  }
  /// Pixels from here to the end of the row, this one counted; they are phase.step[2] apart in the output.
  int64_t left_in_row() const { return phase_.count[2] - at_[2]; }
  void next() {
    for (int d = kConvDims - 1; d >= 0; --d) {
      if (++at_[d] < phase_.count[d]) return;
      at_[d] = 0;
    }
    ++image_;
  }

 private:
  const ConvPhase& phase_;
  ConvExtent out_;
  int64_t image_;
  ConvExtent at_{};
};

}  // namespace halftone::kernels
