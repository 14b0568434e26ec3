// Lists of dimensions, and statistics brought beside what they were taken of.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/var_mean.h>

#include <numeric>
#include <tuple>
#include <vector>

namespace halftone {

inline std::vector<int64_t> first_dimensions(int64_t count) {
  std::vector<int64_t> dims(count);
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

/// The last `count` of `all`.
inline std::vector<int64_t> last_dimensions(int64_t all, size_t count) {
  std::vector<int64_t> dims(count);
  std::iota(dims.begin(), dims.end(), all - static_cast<int64_t>(count));
  return dims;
}

/// All but that of the channels, 1.
inline std::vector<int64_t> all_but_channels(int64_t all) {
  std::vector<int64_t> dims = {0};
  for (int64_t i = 2; i < all; ++i) dims.push_back(i);
  return dims;
}

/// Both with these dimensions kept; the variance is the biased one.
inline std::tuple<at::Tensor, at::Tensor> variance_and_mean(const at::Tensor& x, at::IntArrayRef dims) {
  return at::var_mean(x, dims, /*correction=*/at::Scalar(0), /*keepdim=*/true);
}

/// [C] as [1, C, 1, …], [N, C] as [N, C, 1, …].
inline at::Tensor beside_channels(const at::Tensor& statistics, int64_t dims) {
  std::vector<int64_t> sizes(dims, 1);
  if (statistics.dim() == 2) sizes[0] = statistics.size(0);
  sizes[1] = statistics.size(-1);
  return statistics.view(sizes);
}

}  // namespace halftone
