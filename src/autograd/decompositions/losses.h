// Shared by all losses: the reduction of their elements to a number.
#pragma once

#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>

namespace halftone {

/// Mean, sum, or the losses themselves; `reduction` is one of at::Reduction.
at::Tensor reduce_loss(const at::Tensor& losses, int64_t reduction);

/// 1/n where the mean is taken, else 1: what a gradient is multiplied with.
double mean_share(const at::Tensor& x, int64_t reduction);

}  // namespace halftone
