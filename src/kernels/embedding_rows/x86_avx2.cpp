// embedding_rows, eight or sixteen columns at a time. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/common/x86_avx2_math.h"
#include "kernels/embedding_rows/kernels.h"

namespace halftone::kernels {
namespace {

// Eight s8 in the lower half of `bytes`, dequantized.
inline __m256 dequantize8(__m128i bytes, __m256i zero_point, __m256 scale) {
  return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_cvtepi8_epi32(bytes), zero_point)), scale);
}

inline void store8(const EmbeddingRun& run, int64_t c, __m256 y) {
  if (run.type == OutputType::kBFloat16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(static_cast<uint16_t*>(run.out) + c), to_bfloat16x8(y));
  } else {
    _mm256_storeu_ps(static_cast<float*>(run.out) + c, y);
  }
}

// Eight bytes of int4 to sixteen s8 in their order: each byte becomes a 16-bit lane with its halves in the
// two bytes.
inline __m128i nibbles(const uint8_t* q) {
  const __m128i lanes = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(q)));
  const __m128i split = _mm_and_si128(_mm_or_si128(lanes, _mm_slli_epi16(lanes, 4)), _mm_set1_epi8(15));
  const __m128i eight = _mm_set1_epi8(8);
  return _mm_sub_epi8(_mm_xor_si128(split, eight), eight);
}

}  // namespace

void embedding_run_avx2(const EmbeddingRun& run) {
  const __m256i zero_point = _mm256_set1_epi32(run.zero_point);
  const __m256 scale = _mm256_set1_ps(run.scale);
  int64_t c = 0;
  if (run.format == EmbeddingFormat::kInt8) {
    for (; c + 8 <= run.width; c += 8) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(run.q + c));
      store8(run, c, dequantize8(bytes, zero_point, scale));
    }
  } else {
    for (; c + 16 <= run.width; c += 16) {
      const __m128i bytes = nibbles(run.q + c / 2);
      store8(run, c, dequantize8(bytes, zero_point, scale));
      store8(run, c + 8, dequantize8(_mm_unpackhi_epi64(bytes, bytes), zero_point, scale));
    }
  }
  if (c == run.width) return;
  EmbeddingRun rest = run;
  rest.q += run.format == EmbeddingFormat::kInt8 ? c : c / 2;
  rest.width -= c;
  rest.out = static_cast<char*>(run.out) + c * (run.type == OutputType::kBFloat16 ? 2 : 4);
  embedding_run_scalar(rest);
}

}  // namespace halftone::kernels
