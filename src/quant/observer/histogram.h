// The histogram of a value, and the part of its range that is worth its levels.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

namespace halftone {

/// `histogram` over [old_min, old_max] as one over the wider [min, max], of as many bins.
at::Tensor rescaled_histogram(const at::Tensor& histogram, float old_min, float old_max, float min,
                              float max);

/// The range between two bins' edges that the search for the least squared error ends at: quantiles are given
/// up on the side where that costs less, as long as the error falls. Floats as torch.ao computes them, so
/// that the same bins come out.
std::pair<float, float> range_with_least_error(const at::Tensor& histogram, float min, float max,
                                               int64_t levels);

}  // namespace halftone
