// pooling in plain C++, for every machine: the reference of the other kernels.
#include <cmath>

#include "kernels/pooling/kernels.h"

namespace halftone::kernels {
namespace {

/// Calls take(x) for the element of channel c at each pixel of the window, in the order of memory.
template <typename Take>
void visit_window(const PoolPatch& p, int64_t c, Take take) {
  for (int64_t d = 0; d < p.count[0]; ++d) {
    for (int64_t h = 0; h < p.count[1]; ++h) {
      const float* row = p.x + d * p.stride[0] + h * p.stride[1] + c;
      for (int64_t w = 0; w < p.count[2]; ++w) take(row[w * p.stride[2]]);
    }
  }
}

}  // namespace

void pool_max_scalar(const PoolPatch& p) {
  for (int64_t c = 0; c < p.channels; ++c) {
    float largest = -INFINITY;
    visit_window(p, c, [&](float x) {
      if (x > largest || std::isnan(x)) largest = x;
    });
    p.y[c] = largest;
  }
}

void pool_mean_scalar(const PoolPatch& p) {
  for (int64_t c = 0; c < p.channels; ++c) {
    float sum = 0;
    visit_window(p, c, [&](float x) { sum += x; });
    p.y[c] = sum / p.divide;
  }
}

}  // namespace halftone::kernels
