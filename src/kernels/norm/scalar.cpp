// norm in plain C++, for every machine: the reference of the other kernels.
#include <cmath>

#include "kernels/norm/kernels.h"

namespace halftone::kernels {

void norm_row_scalar(const NormRow& n) {
  // v is x + residual, recomputed where it is needed unless `sum` keeps it.
  const auto v = [&](int64_t i) {
    return n.sum != nullptr ? n.sum[i] : n.residual != nullptr ? n.x[i] + n.residual[i] : n.x[i];
  };
  if (n.sum != nullptr) {
    for (int64_t i = 0; i < n.k; ++i) n.sum[i] = n.residual != nullptr ? n.x[i] + n.residual[i] : n.x[i];
  }
  double mean = 0;
  if (n.kind == NormKind::kLayer) {
    for (int64_t i = 0; i < n.k; ++i) mean += v(i);
    mean /= static_cast<double>(n.k);
  }
  double squares = 0;
  for (int64_t i = 0; i < n.k; ++i) squares += (v(i) - mean) * (v(i) - mean);
  const auto r = static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(n.k) + n.eps));
  const auto shift = static_cast<float>(mean);
  for (int64_t i = 0; i < n.k; ++i) {
    float y = (v(i) - shift) * r;
    if (n.gamma != nullptr) y *= n.gamma[i];
    n.y[i] = n.beta != nullptr ? y + n.beta[i] : y;
  }
}

}  // namespace halftone::kernels
