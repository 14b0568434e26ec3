// Activations filled up with zeros, for kernels that multiply whole groups of k only.
#pragma once

#include "kernels/fp32_linear/fp32_linear.h"

namespace halftone::kernels {

/// Workspace that pad_rows takes; 0 if k is `padded` already.
size_t padded_rows_bytes(int64_t m, int64_t k, int64_t padded);

/// The arguments with rows of `padded` activations: those of `args`, copied to the beginning of its
/// workspace, and zeros. The rest of the workspace stays for the caller. Nothing is read beyond k. `args`
/// itself where k is `padded`. Throws kInvalidArgument if the workspace is too small.
Fp32LinearArgs pad_rows(const Fp32LinearArgs& args, int64_t m, int64_t k, int64_t padded,
                        ParallelFor& parallel_for);

}  // namespace halftone::kernels
