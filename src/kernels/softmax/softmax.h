// softmax of rows: y = exp(v - max v) / Σ exp(v - max v), v = scale · x + mask.
//
// `mask` is optional and added; -inf in it removes an element. With V = max |v| over the elements that are
// not -inf, k <= 2^20:
//   |y - exact| <= (1e-6 + 2.5e-7 · V) · exact + 1e-38.
// (Rounding v costs 2^-24 · V in the exponent: the price of single precision, not of this kernel.)
// A row that is -inf throughout, or holds NaN or +inf, gives NaN throughout, as in PyTorch. k = 0 does
// nothing.
#pragma once

#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"

namespace halftone::kernels {

struct SoftmaxProblem {
  int64_t rows = 0;
  int64_t k = 0;
};

struct SoftmaxKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const SoftmaxProblem&);
  /// One row; y may be x, mask may be null.
  void (*row)(const float* x, const float* mask, float scale, int64_t k, float* y);
};

/// Best first, scalar last.
std::span<const SoftmaxKernel> softmax_kernels();

/// Borrowed; strides count elements.
struct SoftmaxArgs {
  const float* x = nullptr;
  int64_t x_stride = 0;
  const float* mask = nullptr;  ///< [rows][mask_stride], or none; stride 0 gives every row the same
  int64_t mask_stride = 0;
  float scale = 1.0f;
  float* y = nullptr;
  int64_t y_stride = 0;
};

/// Splits over rows. Throws kInvalidArgument for negative sizes.
void softmax(const SoftmaxKernel& kernel, const SoftmaxProblem& problem, const SoftmaxArgs& args,
             ParallelFor& parallel_for);

}  // namespace halftone::kernels
