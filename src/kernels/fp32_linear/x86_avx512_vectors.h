// AVX-512 for x86_multiply.h (everything but the weights) and for attention's x86_products.h. Internal
// linkage: see x86_avx2_math.h.
#pragma once

#include "kernels/common/x86_avx512_include.h"

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces)

struct Avx512Vectors {
  using Vector = __m512;
  // A block of rows alone that meets floats is bound by memory, which is read fastest without advice (Zen 4,
  // 4 rows times 1024² floats: 24 G multiply-adds/s, with it 17; bytes and bfloat16 the other way round: 48
  // and 40).
  template <int64_t kStepBytes, typename Step>
  static void fetch_ahead(const Step& s, int64_t i, const unsigned char* at) {
    if (kStepBytes > 64 && s.next_step == kStepBytes) return;
    _mm_prefetch(reinterpret_cast<const char*>(at) + 1024, _MM_HINT_T0);
    _mm_prefetch(static_cast<const char*>(s.next) + i * s.next_step, _MM_HINT_T1);
  }
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
