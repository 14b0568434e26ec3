// The driver behind fp32_linear and the weight-only linears: fp32 rows times fp32 panels, which are ready or
// expanded on the way.
//
// Weights of fewer bits are expanded to floats one slab (a panel and 256 steps of k: 16 KB) at a time, into
// first-level cache, and every block of rows that a task has is multiplied with the slab before the next: the
// expansion is paid once for up to 96 rows. Few rows are multiplied straight from the packed weights instead,
// where the operation can.
#pragma once

#include "kernels/fp32_linear/fp32_linear.h"

namespace halftone::kernels {

/// Where panels come from. Borrowed for a call.
struct Fp32Panels {
  int64_t panel_count = 0;
  /// Ready panels [k][tile_n], which the kernel's own multiply reads; or:
  const unsigned char* ready = nullptr;
  int element_bytes = 4;  ///< of ready panels
  const float* factor =
      nullptr;  ///< of ready panels, optional: for each column, what its sums are multiplied by
  const void* packed = nullptr;  ///< what the functions below read
  /// Steps [k, k + steps) of a panel to [steps][tile_n] floats. k is a multiple of 256.
  void (*expand)(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out) = nullptr;
  /// Optional, for 1 to fused_rows rows [k][count]: sums [panels][count][tile_n] of 1 to 4 panels, all of k.
  void (*multiply_rows)(const void* packed, const float* rows, int count, int64_t panel, int panels,
                        float* sums) = nullptr;
  int fused_rows = 6;  ///< at most 12
  /// Optional: how multiply_rows wants steps [k, k + steps) of its rows, if not as [k][count]. k is a
  /// multiple of 256, and so is `steps` but for the last. `rows` has room for count * (k + k / 32) floats.
  void (*pack_rows)(const void* packed, const float* x, int64_t stride, int count, int64_t k, int64_t steps,
                    float* rows) = nullptr;
};

/// Throws kInvalidArgument unless the weights have the problem's n and k and there is an input and an output.
void check_panel_args(const char* operation, const Fp32LinearProblem& problem,
                      const Fp32LinearProblem& weights, const Fp32LinearArgs& args);

/// Whether an activation is beyond 2^90, infinite or NaN. Kernels that sum x · qw before they scale, or that
/// subtract zero points from sums, would overflow where x · (qw · scale) does not: with such activations
/// weights are expanded first, and the result is that of plain float arithmetic with the restored weights.
bool has_huge_activations(const Fp32LinearArgs& args, int64_t m, int64_t k);

size_t fp32_panels_workspace_bytes(const Fp32LinearProblem& problem, int threads, OutputType type);

/// args.weights is not read. m and n are not 0.
void run_fp32_panels(const Fp32LinearKernel& kernel, const Fp32LinearProblem& problem,
                     const Fp32LinearArgs& args, const Fp32Panels& source, ParallelFor& parallel_for);

}  // namespace halftone::kernels
