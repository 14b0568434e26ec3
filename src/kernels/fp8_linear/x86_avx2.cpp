// fp8_linear for AVX2 and F16C: bytes to floats by way of half precision. Compiled for AVX2: no inline code
// from elsewhere.
#include "kernels/common/x86_avx2_factored_panels.h"
#include "kernels/fp8_linear/kernels.h"

namespace halftone::kernels {
namespace {

// Sixteen bytes read as the upper bits of half-precision numbers (pack.h). An e4m3fn byte is widened with its
// sign and moved so that its exponent ends where half precision's does; the bit above the exponent is cleared
// of the sign's copy.
template <Float8Format F>
struct Bytes {
  static void load(const unsigned char* q, __m256& w0, __m256& w1) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
    __m256i half;
    if constexpr (F == Float8Format::kE4m3fn) {
      half = _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 7),
                              _mm256_set1_epi16(static_cast<int16_t>(0xbf80)));
    } else {
      half = _mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 8);
    }
    w0 = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
    w1 = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
  }
};

using E4m3fn = Bytes<Float8Format::kE4m3fn>;
using E5m2 = Bytes<Float8Format::kE5m2>;

inline bool is_e4m3fn(const void* packed) {
  return static_cast<const PackedPanels*>(packed)->format == static_cast<uint32_t>(Float8Format::kE4m3fn);
}

}  // namespace

void fp8_expand_avx2(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out) {
  (is_e4m3fn(packed) ? expand_factored<E4m3fn> : expand_factored<E5m2>)(packed, panel, k, steps, out);
}

void fp8_multiply_rows_avx2(const void* packed, const float* rows, int count, int64_t panel, int panels,
                            float* sums) {
  (is_e4m3fn(packed) ? multiply_rows_factored<E4m3fn> : multiply_rows_factored<E5m2>)(packed, rows, count,
                                                                                      panel, panels, sums);
}

}  // namespace halftone::kernels
