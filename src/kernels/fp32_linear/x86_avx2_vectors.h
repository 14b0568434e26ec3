// AVX2 for x86_multiply.h (everything but the weights) and for attention's x86_products.h. Internal linkage:
// see x86_avx2_math.h.
#pragma once

#include <immintrin.h>

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces)

struct Avx2Vectors {
  using Vector = __m256;
  template <int64_t kStepBytes, typename Step>
  static void fetch_ahead(const Step& s, int64_t i, const unsigned char* at) {
    _mm_prefetch(reinterpret_cast<const char*>(at) + 1024, _MM_HINT_T0);
    _mm_prefetch(static_cast<const char*>(s.next) + i * s.next_step, _MM_HINT_T1);
  }
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector broadcast(const float* x) { return _mm256_broadcast_ss(x); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector read(const float* x) { return _mm256_load_ps(x); }
  static void write(float* x, Vector v) { _mm256_store_ps(x, v); }
};

}  // namespace
}  // namespace halftone::kernels
