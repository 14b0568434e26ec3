// int8_weight_only_linear for AVX2: bytes to floats. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/common/x86_avx2_factored_panels.h"
#include "kernels/fp32_linear/x86_avx2_vectors.h"
#include "kernels/fp32_linear/x86_multiply.h"
#include "kernels/int8_weight_only_linear/kernels.h"

namespace halftone::kernels {
namespace {

struct Bytes : Avx2Vectors {
  static constexpr int kElementBytes = 1;
  static __m256 eight(const unsigned char* q) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(q))));
  }
  static void load(const unsigned char* q, __m256& w0, __m256& w1) {
    w0 = eight(q);
    w1 = eight(q + 8);
  }
};

}  // namespace

void int8_expand_avx2(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out) {
  expand_factored<Bytes>(packed, panel, k, steps, out);
}

void int8_multiply_rows_avx2(const void* packed, const float* rows, int count, int64_t panel, int panels,
                             float* sums) {
  multiply_rows_factored<Bytes>(packed, rows, count, panel, panels, sums);
}

void int8_multiply_avx2(const Fp32LinearStep& step) {
  multiply_up_to_6<Bytes>(step);
}

}  // namespace halftone::kernels
