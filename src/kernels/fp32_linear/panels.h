// The driver behind fp32_linear and the weight-only linears: fp32 rows times fp32 panels, which are ready or
// expanded on the way.
//
// Weights of fewer bits are expanded to floats one slab (a panel and 256 steps of k: 16 KB) at a time, into
// first-level cache, and every block of rows that a task has is multiplied with the slab before the next: the
// expansion is paid once for up to 96 rows.
#pragma once

#include "kernels/fp32_linear/fp32_linear.h"

namespace halftone::kernels {

/// Where panels come from. Borrowed for a call.
struct Fp32Panels {
  int64_t panel_count = 0;
  const float* floats = nullptr;  ///< ready panels, as fp32_linear packs them; or:
  const void* packed = nullptr;   ///< what the two functions below read
  /// Steps [k, k + steps) of a panel to [steps][tile_n] floats. k is a multiple of 256.
  void (*expand)(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out) = nullptr;
  /// Optional, for one row: sums [panels][tile_n] of 1 or 4 panels, all of k, straight from the packed
  /// weights.
  void (*multiply_row)(const void* packed, const float* x, int64_t panel, int panels, float* sums) = nullptr;
};

size_t fp32_panels_workspace_bytes(const Fp32LinearProblem& problem, int threads, OutputType type);

/// args.weights is not read. m and n are not 0.
void run_fp32_panels(const Fp32LinearKernel& kernel, const Fp32LinearProblem& problem,
                     const Fp32LinearArgs& args, const Fp32Panels& source, Splitter& splitter);

}  // namespace halftone::kernels
