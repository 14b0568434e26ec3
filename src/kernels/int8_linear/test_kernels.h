// The int8_linear kernels that tests can run here: the machine's own, and the AVX-512 one through its
// emulation.
#pragma once

#include "kernels/common/test_support.h"
#include "kernels/int8_linear/int8_linear.h"
#include "kernels/int8_linear/kernels.h"

namespace halftone::kernels::testing {

inline std::vector<Int8LinearKernel> int8_test_kernels() {
  std::vector<Int8LinearKernel> kernels = runnable(int8_linear_kernels());
#if defined(HALFTONE_EMULATED_KERNELS)
  add_emulated(kernels, int8_linear_kernels(), &Int8LinearKernel::compute, int8_compute_avx512vnni,
               int8_compute_avx512vnni_emulated, "int8_linear_u8s8_12x32x4_avx512vnni_emulated");
#endif
  return kernels;
}

/// Packs for one kernel and runs it with a workspace of exactly the size that was asked for.
inline void run_int8_linear(const Int8LinearKernel& kernel, const Int8LinearProblem& p, Int8LinearArgs args,
                            const Int8Weights& weights, ParallelFor& parallel_for) {
  Aligned packed(int8_packed_bytes(p.n, p.k, kernel.tile));
  pack_int8_weights(weights, kernel.tile, packed.data());
  const size_t bytes = int8_linear_workspace_bytes(kernel, p, parallel_for.threads(), args.epilogue.type);
  Guarded<unsigned char> workspace(static_cast<int64_t>(bytes), 0xa5);
  args.weights = packed.data();
  args.workspace = workspace.data();
  args.workspace_bytes = bytes;
  int8_linear(kernel, p, args, parallel_for);
}

}  // namespace halftone::kernels::testing
