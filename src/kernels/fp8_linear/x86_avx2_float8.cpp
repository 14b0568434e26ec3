// Conversions to and from 8-bit floats, and the rounding of activations, for AVX2. Compiled for AVX2: no
// inline code from elsewhere.
#include "kernels/common/x86_avx2_math.h"
#include "kernels/fp8_linear/kernels.h"

namespace halftone::kernels {
namespace {

// The numbers of float8.cpp's Layout.
template <Float8Format F>
struct Layout;
template <>
struct Layout<Float8Format::kE4m3fn> {
  static constexpr int kShift = 20, kRebias = 120 << 3, kLargest = 0x7e, kNotFinite = 0x7f;
  static constexpr float kNormal = 0x1p-6f, kMagic = 0x1p14f;
};
template <>
struct Layout<Float8Format::kE5m2> {
  static constexpr int kShift = 21, kRebias = 112 << 2, kLargest = 0x7c, kNotFinite = 0x7c;
  static constexpr float kNormal = 0x1p-14f, kMagic = 0x1p7f;
};

// The float's bits rounded to nearest even at bit kShift; the bits below are rubbish.
template <int kShift>
inline __m256i round_bits(__m256i bits) {
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, kShift), _mm256_set1_epi32(1));
  return _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32((1 << (kShift - 1)) - 1));
}

// Eight codes, one in each 32-bit lane.
template <Float8Format F>
inline __m256i encode8(__m256 x) {
  using L = Layout<F>;
  const __m256 sign_bit = _mm256_set1_ps(-0.0f), absolute = _mm256_andnot_ps(sign_bit, x);
  const __m256i rounded = round_bits<L::kShift>(_mm256_castps_si256(absolute));
  const __m256i normal =
      _mm256_sub_epi32(_mm256_srli_epi32(rounded, L::kShift), _mm256_set1_epi32(L::kRebias));
  const __m256 magic = _mm256_set1_ps(L::kMagic);
  const __m256i denormal =
      _mm256_sub_epi32(_mm256_castps_si256(_mm256_add_ps(absolute, magic)), _mm256_castps_si256(magic));
  const __m256 is_denormal = _mm256_cmp_ps(absolute, _mm256_set1_ps(L::kNormal), _CMP_LT_OQ);
  __m256i code = _mm256_blendv_epi8(normal, denormal, _mm256_castps_si256(is_denormal));
  code = _mm256_min_epi32(code, _mm256_set1_epi32(L::kLargest));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  code = _mm256_blendv_epi8(code, _mm256_set1_epi32(0x7f), nan);
  const __m256i sign = _mm256_srli_epi32(_mm256_castps_si256(_mm256_and_ps(x, sign_bit)), 24);
  return _mm256_or_si256(code, sign);
}

inline __m128i bytes_of(__m256i lanes) {
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  return _mm_packus_epi16(words, words);
}

template <Float8Format F>
void encode(const float* x, int64_t count, uint8_t* bytes) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(bytes + i), bytes_of(encode8<F>(_mm256_loadu_ps(x + i))));
  }
  if (i == count) return;
  const int left = static_cast<int>(count - i);
  alignas(16) uint8_t part[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(part), bytes_of(encode8<F>(load_part8(x + i, left))));
  for (int j = 0; j < left; ++j) bytes[i + j] = part[j];
}

// Eight codes in 32-bit lanes to floats. Denormals come from their integer, so no arithmetic meets a denormal
// float.
template <Float8Format F>
inline __m256 decode8(__m256i lanes) {
  using L = Layout<F>;
  const __m256i code = _mm256_and_si256(lanes, _mm256_set1_epi32(0x7f));
  const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(lanes, _mm256_set1_epi32(0x80)), 24);
  const __m256i normal = _mm256_slli_epi32(_mm256_add_epi32(code, _mm256_set1_epi32(L::kRebias)), L::kShift);
  constexpr int kFirstNormal = 1 << (23 - L::kShift);
  const __m256 denormal = _mm256_mul_ps(_mm256_cvtepi32_ps(code), _mm256_set1_ps(L::kNormal / kFirstNormal));
  const __m256i is_denormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(kFirstNormal), code);
  __m256i bits = _mm256_blendv_epi8(normal, _mm256_castps_si256(denormal), is_denormal);
  const __m256i not_finite = _mm256_cmpgt_epi32(code, _mm256_set1_epi32(L::kNotFinite - 1));
  const __m256i infinite = _mm256_cmpeq_epi32(code, _mm256_set1_epi32(0x7c));
  const __m256i special =
      _mm256_blendv_epi8(_mm256_set1_epi32(0x7fc00000), _mm256_set1_epi32(0x7f800000), infinite);
  bits = _mm256_blendv_epi8(bits, special, not_finite);
  return _mm256_castsi256_ps(_mm256_or_si256(bits, sign));
}

template <Float8Format F>
void decode(const uint8_t* bytes, int64_t count, float* x) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + i));
    _mm256_storeu_ps(x + i, decode8<F>(_mm256_cvtepu8_epi32(eight)));
  }
  if (i == count) return;
  const int left = static_cast<int>(count - i);
  alignas(16) uint8_t part[16] = {};
  for (int j = 0; j < left; ++j) part[j] = bytes[i + j];
  const __m128i eight = _mm_load_si128(reinterpret_cast<const __m128i*>(part));
  store_part8(x + i, decode8<F>(_mm256_cvtepu8_epi32(eight)), left);
}

inline int part_of(int64_t left) {
  return left < 8 ? static_cast<int>(left) : 8;
}

// float8_row_scale, eight at a time.
float row_scale(const float* x, int64_t k) {
  __m256 largest = _mm256_setzero_ps(), odd = largest;  // x - x is NaN if x is not finite
  for (int64_t i = 0; i < k; i += 8) {
    const __m256 v = load_part8(x + i, part_of(k - i));
    largest = _mm256_max_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), v), largest);
    odd = _mm256_add_ps(odd, _mm256_sub_ps(v, v));
  }
  if (_mm256_movemask_ps(_mm256_cmp_ps(odd, odd, _CMP_UNORD_Q)) != 0) return __builtin_nanf("");
  const float scale = max_lanes8(largest) / 448.0f;
  return scale < 1.17549435e-38f ? 1.17549435e-38f : scale;
}

// e4m3fn(x) as floats, for finite x.
inline __m256 round_e4m3(__m256 x) {
  using L = Layout<Float8Format::kE4m3fn>;
  const __m256 sign_bit = _mm256_set1_ps(-0.0f), absolute = _mm256_andnot_ps(sign_bit, x);
  const __m256i rounded = round_bits<L::kShift>(_mm256_castps_si256(absolute));
  const __m256 normal =
      _mm256_min_ps(_mm256_castsi256_ps(_mm256_and_si256(rounded, _mm256_set1_epi32(-1 << L::kShift))),
                    _mm256_set1_ps(448.0f));
  const __m256 magic = _mm256_set1_ps(L::kMagic);
  const __m256 denormal = _mm256_sub_ps(_mm256_add_ps(absolute, magic), magic);
  const __m256 is_denormal = _mm256_cmp_ps(absolute, _mm256_set1_ps(L::kNormal), _CMP_LT_OQ);
  return _mm256_or_ps(_mm256_blendv_ps(normal, denormal, is_denormal), _mm256_and_ps(x, sign_bit));
}

}  // namespace

void float8_encode_avx2(const float* x, int64_t count, Float8Format format, uint8_t* bytes) {
  (format == Float8Format::kE4m3fn ? encode<Float8Format::kE4m3fn> : encode<Float8Format::kE5m2>)(x, count,
                                                                                                  bytes);
}

void float8_decode_avx2(const uint8_t* bytes, int64_t count, Float8Format format, float* x) {
  (format == Float8Format::kE4m3fn ? decode<Float8Format::kE4m3fn> : decode<Float8Format::kE5m2>)(bytes,
                                                                                                  count, x);
}

float fp8_round_row_avx2(const float* x, int64_t k, float* y) {
  const float scale = row_scale(x, k);
  const __m256 s = _mm256_set1_ps(scale);
  const bool finite = scale == scale;
  for (int64_t i = 0; i < k; i += 8) {
    const int n = part_of(k - i);
    const __m256 rounded = round_e4m3(_mm256_div_ps(load_part8(x + i, n), s));
    store_part8(y + i, finite ? _mm256_mul_ps(rounded, s) : s, n);
  }
  return scale;
}

}  // namespace halftone::kernels
