// elementwise in plain C++, for every machine: the reference of the other kernels.
#include "kernels/elementwise/kernels.h"

namespace halftone::kernels {

void activate_scalar(const float* x, float* y, int64_t count, Activation activation) {
  for (int64_t i = 0; i < count; ++i) y[i] = activate(x[i], activation);
}

void add_scalar(const float* a, const float* b, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

void mul_scalar(const float* a, const float* b, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = a[i] * b[i];
}

}  // namespace halftone::kernels
