// softmax in plain C++, for every machine: the reference of the other kernels.
#include <cmath>

#include "kernels/softmax/kernels.h"

namespace halftone::kernels {

void softmax_row_scalar(const float* x, const float* mask, float scale, int64_t k, float* y) {
  float largest = -INFINITY;
  for (int64_t i = 0; i < k; ++i) {
    y[i] = mask != nullptr ? x[i] * scale + mask[i] : x[i] * scale;
    largest = y[i] > largest ? y[i] : largest;  // a NaN is not larger, but its exp is NaN and so is the sum
  }
  double sum = 0;
  for (int64_t i = 0; i < k; ++i) {
    y[i] = std::exp(y[i] - largest);
    sum += y[i];
  }
  const auto inverse = static_cast<float>(1.0 / sum);
  for (int64_t i = 0; i < k; ++i) y[i] *= inverse;
}

}  // namespace halftone::kernels
