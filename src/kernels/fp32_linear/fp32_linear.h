// fp32_linear: y = x · Wᵀ on packed weights, all in single precision.
//
//   x [m][k], W [n][k]
//
//   s[i][j] = Σ_k x[i][k] · w[j][k]
//   y[i][j] = activation(s[i][j] + bias[j]) + residual[i][j]   (epilogue.h)
//
// The order of the sum depends on the kernel and on m. Bound, in any order, with e = 2^-24:
//   |s - exact| <= (k + 4) · e · Σ_k |x · w|.
// NaN and infinities go where IEEE arithmetic takes them. m = 0 and n = 0 do nothing; k = 0 gives s = 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"
#include "kernels/common/epilogue.h"
#include "kernels/fp32_linear/pack.h"

namespace halftone::kernels {

struct Fp32LinearProblem {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

/// Where a finished tile goes: `rows` x `columns` sums, for output (row, column) and on.
struct Fp32LinearTile {
  const float* sums;  ///< [rows][tile_n], aligned to 64
  int64_t row;
  int64_t column;
  int rows;
  int columns;
  const Epilogue* epilogue;
};

/// A block of rows times one or more neighbouring panels.
struct Fp32LinearStep {
  const float* rows;  ///< packed by pack_rows with the same count
  int count;
  const void* panel;     ///< the first; floats, or what the kernel's own weights are
  int64_t panel_stride;  ///< bytes from one panel to the next
  int panels;            ///< fp32_panels_at_once(count), or 1
  int64_t k;             ///< steps
  bool add;              ///< to what is in sums
  float* sums;           ///< [panels][count][tile_n], aligned to 64
  const void* next;      ///< only a hint: what to fetch meanwhile,
  int64_t next_step;     ///< so many bytes for each step of k
};

/// How many panels a kernel gets at once for a block of so many rows: few rows leave registers free, and
/// several panels are several streams from memory, which a core reads faster than one.
constexpr int fp32_panels_at_once(int count) {
  return count == 1 ? 4 : count <= 3 ? 2 : 1;
}

struct Fp32LinearKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const Fp32LinearProblem&);
  int tile_n;  ///< how weights must be packed
  int rows;    ///< tallest block of rows
  /// `count` <= rows rows of x to [k][count].
  void (*pack_rows)(const float* x, int64_t stride, int count, int64_t k, float* packed);
  /// sums = (add ? sums : 0) + rows · panels.
  void (*multiply)(const Fp32LinearStep& step);
  void (*finish)(const Fp32LinearTile& tile);
};

/// Best first, scalar last.
std::span<const Fp32LinearKernel> fp32_linear_kernels();

/// The best kernel at `isa`. Throws kInvalidArgument for negative sizes.
const Fp32LinearKernel& choose_fp32_linear(const Fp32LinearProblem& problem, Isa isa = active_isa());

/// Borrowed; strides count elements.
struct Fp32LinearArgs {
  const float* x = nullptr;  ///< [m][x_stride]
  int64_t x_stride = 0;
  const void* weights = nullptr;  ///< made by pack_fp32_weights for kernel.tile_n
  Epilogue epilogue;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  /// Instead of x: the same in bfloat16, widened exactly. fp8_linear takes it where it keeps the activations.
  const uint16_t* x_bfloat16 = nullptr;
};

/// Scratch memory for one call; any alignment.
size_t fp32_linear_workspace_bytes(const Fp32LinearKernel& kernel, const Fp32LinearProblem& problem,
                                   int threads, OutputType type);

/// Runs the kernel, split over tiles of rows and columns. Allocates nothing. Throws kInvalidArgument when the
/// arguments do not fit.
void fp32_linear(const Fp32LinearKernel& kernel, const Fp32LinearProblem& problem, const Fp32LinearArgs& args,
                 ParallelFor& parallel_for);

}  // namespace halftone::kernels
