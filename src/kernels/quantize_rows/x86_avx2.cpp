// quantize_rows, 32 elements a step. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/common/x86_avx2_math.h"
#include "kernels/quantize_rows/kernels.h"

namespace halftone::kernels {
namespace {

constexpr float kSmallestScale = 1.17549435e-38f;  // FLT_MIN

float reduce_max(__m256 v) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

struct Range {
  float lo;
  float hi;
  bool finite;
};

Range range_of(const float* x, int64_t k) {
  __m256 hi0 = _mm256_setzero_ps(), hi1 = hi0, neg0 = hi0, neg1 = hi0;
  // x - x is 0 for finite x and NaN otherwise; NaN survives the addition. max_ps alone would lose a NaN.
  __m256 odd = _mm256_setzero_ps();
  const __m256 zero = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + 16 <= k; i += 16) {
    const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
    hi0 = _mm256_max_ps(hi0, a);
    hi1 = _mm256_max_ps(hi1, b);
    neg0 = _mm256_max_ps(neg0, _mm256_sub_ps(zero, a));
    neg1 = _mm256_max_ps(neg1, _mm256_sub_ps(zero, b));
    odd = _mm256_add_ps(odd, _mm256_add_ps(_mm256_sub_ps(a, a), _mm256_sub_ps(b, b)));
  }
  for (; i < k; i += 8) {
    const __m256 a = load_part8(x + i, k - i < 8 ? static_cast<int>(k - i) : 8);
    hi0 = _mm256_max_ps(hi0, a);
    neg0 = _mm256_max_ps(neg0, _mm256_sub_ps(zero, a));
    odd = _mm256_add_ps(odd, _mm256_sub_ps(a, a));
  }
  const bool finite = _mm256_movemask_ps(_mm256_cmp_ps(odd, odd, _CMP_UNORD_Q)) == 0;
  return {-reduce_max(_mm256_max_ps(neg0, neg1)), reduce_max(_mm256_max_ps(hi0, hi1)), finite};
}

struct Step {
  __m256 inverse;
  __m256i zero_point;
  bool is_signed;
};

// 8 rounded integers; |x * inverse| stays below 256, so the conversion cannot overflow.
__m256i quantize8(__m256 x, const Step& s) {
  return _mm256_add_epi32(_mm256_cvtps_epi32(_mm256_mul_ps(x, s.inverse)), s.zero_point);
}

// 4 x 8 integers to 32 bytes in order. The two packs saturate, which is the clamp of the contract (kS8 has no
// -128: |x| <= 127 * scale up to one rounding, and rint of that is at most 127).
__m256i pack32(__m256i a, __m256i b, __m256i c, __m256i d, bool is_signed) {
  const __m256i ab = _mm256_packs_epi32(a, b), cd = _mm256_packs_epi32(c, d);
  const __m256i bytes = is_signed ? _mm256_packs_epi16(ab, cd) : _mm256_packus_epi16(ab, cd);
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

void quantize(const float* x, int64_t k, const Step& s, uint8_t* q) {
  int64_t i = 0;
  for (; i + 32 <= k; i += 32) {
    const __m256i bytes = pack32(
        quantize8(_mm256_loadu_ps(x + i), s), quantize8(_mm256_loadu_ps(x + i + 8), s),
        quantize8(_mm256_loadu_ps(x + i + 16), s), quantize8(_mm256_loadu_ps(x + i + 24), s), s.is_signed);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + i), bytes);
  }
  for (; i < k; i += 8) {
    const int count = k - i < 8 ? static_cast<int>(k - i) : 8;
    const __m256i v = quantize8(load_part8(x + i, count), s);
    alignas(32) uint8_t part[32];
    _mm256_store_si256(reinterpret_cast<__m256i*>(part), pack32(v, v, v, v, s.is_signed));
    for (int j = 0; j < count; ++j) q[i + j] = part[j];
  }
}

}  // namespace

RowScale quantize_row_avx2(const float* x, int64_t k, RowFormat format, uint8_t* q) {
  const Range range = range_of(x, k);
  if (!range.finite) {
    for (int64_t i = 0; i < k; ++i) q[i] = 0;
    return {__builtin_nanf(""), 0};
  }
  const bool is_signed = format == RowFormat::kS8;
  const float largest = -range.lo > range.hi ? -range.lo : range.hi;
  float scale = is_signed ? largest / 127.0f : range.hi / 255.0f - range.lo / 255.0f;
  scale = scale < kSmallestScale ? kSmallestScale : scale;
  const float inverse = 1.0f / scale;
  int32_t zero_point = 0;
  if (!is_signed) {
    zero_point = _mm_cvtss_si32(_mm_set_ss(-range.lo * inverse));
    zero_point = zero_point < 0 ? 0 : zero_point > 255 ? 255 : zero_point;
  }
  quantize(x, k, {_mm256_set1_ps(inverse), _mm256_set1_epi32(zero_point), is_signed}, q);
  return {scale, zero_point};
}

}  // namespace halftone::kernels
