// norm: layer norm and RMS norm of rows, with the residual add before and the row quantization after in the
// same pass.
//
//   v = x + residual (rounded; stored to `sum` if asked for: it is the next residual)
//   layer: y = (v - mean v) · r · gamma + beta, r = 1 / sqrt(mean (v - mean v)² + eps)
//   rms:   y = v · r · gamma + beta,            r = 1 / sqrt(mean v² + eps)
// gamma and beta are optional. Means are summed in double precision, so neither long rows nor a value of 1e30
// spoil them.
//
// Bound, with A = max |v|:  |y - exact| <= 6 · 2^-24 · (|gamma| · 2 A · r + |y| + |beta|), while A <= 1e37.
// A row with NaN or infinity gives NaN throughout. k = 0 does nothing. eps = 0 and a constant row give NaN,
// as in PyTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"
#include "kernels/common/epilogue.h"

namespace halftone::kernels {

enum class NormKind : int { kLayer, kRms };

struct NormProblem {
  int64_t rows = 0;
  int64_t k = 0;
  NormKind kind = NormKind::kLayer;
};

/// One row; pointers as in NormArgs.
struct NormRow {
  NormKind kind;
  int64_t k;
  const float* x;
  const float* residual;
  float* sum;
  const float* gamma;
  const float* beta;
  float eps;
  float* y;
};

struct NormKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const NormProblem&);
  void (*row)(const NormRow& row);
};

/// Best first, scalar last.
std::span<const NormKernel> norm_kernels();

/// Borrowed; strides count elements. `sum` may be x or residual; the float output may be x.
struct NormArgs {
  const float* x = nullptr;  ///< [rows][x_stride]
  int64_t x_stride = 0;
  const float* residual = nullptr;  ///< [rows][residual_stride], or none
  int64_t residual_stride = 0;
  float* sum = nullptr;  ///< [rows][sum_stride], or none
  int64_t sum_stride = 0;
  const float* gamma = nullptr;  ///< [k], or none (1)
  const float* beta = nullptr;   ///< [k], or none (0)
  float eps = 1e-5f;
  OutputType type = OutputType::kFloat32;
  void* out = nullptr;  ///< [rows][out_stride]
  int64_t out_stride = 0;
  RowFormat row_format = RowFormat::kU8;  // these three only for kQuantizedRows
  float* out_scale = nullptr;
  int32_t* out_zero_point = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

/// Scratch memory for one call: a row for each thread unless the output is float.
size_t norm_workspace_bytes(const NormProblem& problem, int threads, OutputType type);

/// Splits over rows. Throws kInvalidArgument for negative sizes, a negative or NaN eps, or a workspace that
/// is too small.
void norm(const NormKernel& kernel, const NormProblem& problem, const NormArgs& args,
          ParallelFor& parallel_for);

}  // namespace halftone::kernels
