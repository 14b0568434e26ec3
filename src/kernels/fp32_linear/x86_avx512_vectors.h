// AVX-512 for x86_multiply.h (everything but the weights) and for attention's x86_products.h. Internal
// linkage: see x86_avx2_math.h.
#pragma once

#include "kernels/common/x86_avx512_include.h"

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces)

struct Avx512Vectors {
  using Vector = __m512;
  static constexpr bool kPrefetch = false;
  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector broadcast(const float* x) { return _mm512_set1_ps(*x); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector read(const float* x) { return _mm512_loadu_ps(x); }
  static void write(float* x, Vector v) { _mm512_storeu_ps(x, v); }
};

}  // namespace
}  // namespace halftone::kernels
