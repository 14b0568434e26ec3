// elementwise, eight at a time. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/common/x86_avx2_math.h"
#include "kernels/elementwise/kernels.h"

namespace halftone::kernels {
namespace {

inline int part(int64_t left) {
  return left < 8 ? static_cast<int>(left) : 8;
}

// The activation is a template argument, so that the choice is made once and not for every eight.
template <Activation A>
void activate_each(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; i += 8)
    store_part8(y + i, activate8(load_part8(x + i, part(count - i)), A), part(count - i));
}

}  // namespace

void activate_avx2(const float* x, float* y, int64_t count, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return activate_each<Activation::kNone>(x, y, count);
    case Activation::kRelu:
      return activate_each<Activation::kRelu>(x, y, count);
    case Activation::kGeluErf:
      return activate_each<Activation::kGeluErf>(x, y, count);
    case Activation::kGeluTanh:
      return activate_each<Activation::kGeluTanh>(x, y, count);
    case Activation::kSilu:
      return activate_each<Activation::kSilu>(x, y, count);
  }
}

void add_avx2(const float* a, const float* b, float* y, int64_t count) {
  for (int64_t i = 0; i < count; i += 8) {
    const int n = part(count - i);
    store_part8(y + i, _mm256_add_ps(load_part8(a + i, n), load_part8(b + i, n)), n);
  }
}

void mul_avx2(const float* a, const float* b, float* y, int64_t count) {
  for (int64_t i = 0; i < count; i += 8) {
    const int n = part(count - i);
    store_part8(y + i, _mm256_mul_ps(load_part8(a + i, n), load_part8(b + i, n)), n);
  }
}

}  // namespace halftone::kernels
