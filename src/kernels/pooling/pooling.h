// pooling: the largest element or the mean of each window, channel by channel, in single precision with the
// channels last.
//
//   max:  y[p][c] = largest x[q][c] over the pixels q of p's window; NaN if one of them is NaN
//   mean: y[p][c] = (Σ x[q][c]) / divide, summed in the order of memory
// The same bits on every instruction set and for every number of threads. A window is the product of one run
// of positions in each dimension, so that all of torch's pooling operators are this one: what lies in the
// padding is not in a run, what it counts for in a mean is in `divide`. An empty window gives -inf, or 0.
#pragma once

#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"
#include "kernels/conv/conv_shape.h"

namespace halftone::kernels {

enum class PoolKind : int { kMax, kMean };

/// In one dimension: positions first, first + step, … of the input.
struct PoolRun {
  int64_t first = 0;
  int64_t count = 0;
  int64_t divide = 1;  ///< a mean divides by the product over the dimensions
};

struct PoolProblem {
  PoolKind kind = PoolKind::kMax;
  int64_t batch = 1;
  int64_t channels = 1;
  ConvExtent in{1, 1, 1};  ///< depth, height, width
  ConvExtent out{1, 1, 1};
  ConvExtent step{1, 1, 1};  ///< between the positions of a run: the dilation
};

/// The window of one output pixel.
struct PoolPatch {
  const float* x;             ///< its first pixel
  int64_t count[kConvDims];   ///< of pixels
  int64_t stride[kConvDims];  ///< elements from one to the next
  int64_t channels;
  float divide;
  float* y;  ///< [channels]
};

struct PoolKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const PoolProblem&);
  void (*max)(const PoolPatch&);
  void (*mean)(const PoolPatch&);
};

/// Best first, scalar last.
std::span<const PoolKernel> pool_kernels();

/// Borrowed for the call; nothing may overlap.
struct PoolArgs {
  const float* x = nullptr;  ///< [batch][pixels][x_stride]
  int64_t x_stride = 0;      ///< at least channels
  float* y = nullptr;        ///< [batch][pixels][y_stride]
  int64_t y_stride = 0;
  std::span<const PoolRun> runs[kConvDims];  ///< one for each output position
};

/// Split over rows of output pixels, or over channels where those are few. Allocates nothing. Throws
/// kInvalidArgument for sizes that are negative and runs that leave the input or are too few.
void pool(const PoolKernel& kernel, const PoolProblem& problem, const PoolArgs& args,
          ParallelFor& parallel_for);

}  // namespace halftone::kernels
