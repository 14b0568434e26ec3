// Numbers for the suite's models: weights and inputs that do not depend on machine, threads or random state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace torch::nn {
class Module;
}

namespace halftone {

/// Bell-shaped (the sum of four uniform numbers), mean 0, deviation 1, never beyond 3.5.
at::Tensor drawn_floats(at::IntArrayRef sizes, uint64_t seed);
/// Uniform in [0, limit).
at::Tensor drawn_ids(at::IntArrayRef sizes, int64_t limit, uint64_t seed);

/// Sets every parameter and every running statistic, so that activations neither grow nor vanish: weights
/// have the deviation 1/√inputs (√2 of it in convolutions, which ReLUs follow), norms are about 1 (0.3 where
/// they end a residual branch and are called "residual_norm"), biases are small.
void set_weights(torch::nn::Module& module, uint64_t seed);

}  // namespace halftone
