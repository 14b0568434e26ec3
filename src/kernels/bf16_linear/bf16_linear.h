// bf16_linear: y = x · Wᵀ with bfloat16 weights, multiplied and summed in single precision.
//
//   x [m][k] fp32 or bf16;  W [n][k] bf16;  s[i][j] = Σ_k x[i][k] · w[j][k]; then the epilogue (epilogue.h)
//
// Both are widened exactly, nothing else is rounded to bfloat16 (the output only if it is asked for): this
// is fp32_linear on the widened numbers, with half the bytes to read. A weight becomes a float in a register,
// by a shift or a mask that no multiply-add waits for. Bound, with e = 2^-24:
//   |s - exact| <= (k + 4) · e · Σ_k |x · w|.
// The order of the sum depends on the kernel and on m, never on the number of threads. NaN and infinities, in
// x and in W, go where IEEE arithmetic takes them. m = 0 and n = 0 do nothing; k = 0 gives s = 0.
#pragma once

#include "kernels/bf16_linear/pack.h"
#include "kernels/fp32_linear/fp32_linear.h"

namespace halftone::kernels {

using Bf16LinearProblem = Fp32LinearProblem;

/// As fp32_linear's; `multiply` reads panels of bfloat16.
using Bf16LinearKernel = Fp32LinearKernel;

/// Best first, scalar last.
std::span<const Bf16LinearKernel> bf16_linear_kernels();

/// The best kernel at `isa`. Throws kInvalidArgument for negative sizes.
const Bf16LinearKernel& choose_bf16_linear(const Bf16LinearProblem& problem, Isa isa = active_isa());

/// Scratch memory for one call; any alignment.
size_t bf16_linear_workspace_bytes(const Bf16LinearProblem& problem, int threads, OutputType type);

/// args.weights is made by pack_bf16_weights for kernel.tile_n. Allocates nothing. Throws kInvalidArgument
/// when the arguments do not fit.
void bf16_linear(const Bf16LinearKernel& kernel, const Bf16LinearProblem& problem, const Fp32LinearArgs& args,
                 ParallelFor& parallel_for);

}  // namespace halftone::kernels
