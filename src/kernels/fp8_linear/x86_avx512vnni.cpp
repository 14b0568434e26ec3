// fp8_linear for AVX-512: bytes become floats in registers by way of half precision, blocks of up to 12 rows
// times 32 columns. Compiled for AVX-512 (or emulated, for tests): no inline code from elsewhere.
#include "kernels/fp32_linear/x86_avx512_vectors.h"
// After the AVX-512 intrinsics, whichever they are.
#include "kernels/fp32_linear/x86_multiply.h"
#include "kernels/fp8_linear/kernels.h"

namespace halftone::kernels {
namespace {

// Sixteen bytes read as the upper bits of half-precision numbers, as in x86_avx2.cpp.
template <Float8Format F>
inline __m512 widen16(const unsigned char* q) {
  const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(q)));
  if constexpr (F == Float8Format::kE5m2) return halves_to_floats16(_mm256_slli_epi16(words, 8));
  return halves_to_floats16(
      _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(static_cast<int16_t>(0xbf80))));
}

template <Float8Format F>
struct Bytes : Avx512Vectors {
  static constexpr int kElementBytes = 1;
  static void load(const unsigned char* q, Vector& w0, Vector& w1) {
    w0 = widen16<F>(q);
    w1 = widen16<F>(q + 16);
  }
};

}  // namespace

void HALFTONE_AVX512_NAME(fp8_multiply_e4m3fn_avx512vnni)(const Fp32LinearStep& step) {
  multiply_up_to_12<Bytes<Float8Format::kE4m3fn>>(step);
}

void HALFTONE_AVX512_NAME(fp8_multiply_e5m2_avx512vnni)(const Fp32LinearStep& step) {
  multiply_up_to_12<Bytes<Float8Format::kE5m2>>(step);
}

}  // namespace halftone::kernels
