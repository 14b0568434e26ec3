// bf16_linear for AVX2. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/bf16_linear/kernels.h"
#include "kernels/fp32_linear/x86_avx2_vectors.h"
#include "kernels/fp32_linear/x86_multiply.h"

namespace halftone::kernels {
namespace {

struct Bfloat16s : Avx2Vectors {
  static constexpr int kElementBytes = 2;
  static void load(const unsigned char* at, Vector& w0, Vector& w1) {
    const __m256i lanes = _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
    w0 = _mm256_castsi256_ps(_mm256_slli_epi32(lanes, 16));
    w1 = _mm256_castsi256_ps(_mm256_and_si256(lanes, _mm256_set1_epi32(static_cast<int>(0xffff0000))));
  }
};

}  // namespace

void bf16_multiply_avx2(const Fp32LinearStep& s) {
  multiply_up_to_6<Bfloat16s>(s);
}

}  // namespace halftone::kernels
