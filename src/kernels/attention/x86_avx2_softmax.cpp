// attention's softmax for AVX2. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/attention/kernels.h"
#include "kernels/common/x86_avx2_math.h"

namespace halftone::kernels {
namespace {

// exp(x) for x <= 0: relative error below 6e-7 down to -87, 0 below and for -inf, NaN for NaN. Shorter than
// exp8: one factor of 2^n is enough, and it is made by the addition that rounds (the lowest bits of `t` are n
// + 127).
inline __m256 exp_negative8(__m256 x) {
  const __m256 magic = _mm256_set1_ps(12582912.0f + 127.0f);  // 1.5 · 2^23, so that the last place is 1
  const __m256 t = _mm256_fmadd_ps(x, _mm256_set1_ps(1.44269504088896341f), magic);
  // t is x / ln 2 rounded to an integer n, because its last place is 1; with 127 added its lowest bits are
  // already the exponent field of 2^n.
  const __m256 n = _mm256_sub_ps(t, magic);
  const __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.69314718055994531f), x);
  __m256 p = _mm256_set1_ps(0.0083124f);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.04189128f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.16667119f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.49999224f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  const __m256 power = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(t), 23));
  const __m256 counts = _mm256_cmp_ps(x, _mm256_set1_ps(-87.0f), _CMP_NLT_UQ);  // true for NaN
  return _mm256_and_ps(_mm256_mul_ps(p, power), counts);
}

// 0 or -inf for eight bytes of a mask, `count` of which exist.
inline __m256 kept8(const uint8_t* keep, int count) {
  alignas(8) uint8_t part[8] = {};
  if (count < 8) {
    for (int i = 0; i < count; ++i) part[i] = keep[i];
    keep = part;
  }
  const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(keep)));
  const __m256i masked = _mm256_cmpeq_epi32(wide, _mm256_setzero_si256());
  return _mm256_and_ps(_mm256_castsi256_ps(masked), _mm256_set1_ps(-__builtin_inff()));
}

// Adds row r's mask, puts -inf beyond the last score and returns the largest. The row is padded to whole
// vectors.
float mask_and_max(const AttentionSoftmaxStep& s, int r, int64_t scores) {
  const __m256 lowest = _mm256_set1_ps(-__builtin_inff());
  float* row = s.rows + r * s.stride;
  __m256 largest[2] = {lowest, lowest};  // a NaN loses, but its exp is NaN and so is the sum
  bool masked = s.mask != nullptr || s.keep != nullptr;
  if (masked && s.mask_stride != 1) {
    attention_add_mask(s, r, scores);
    masked = false;
  }
  int64_t j = 0;
  for (; !masked && j + 16 <= scores; j += 16) {
    largest[0] = _mm256_max_ps(_mm256_load_ps(row + j), largest[0]);
    largest[1] = _mm256_max_ps(_mm256_load_ps(row + j + 8), largest[1]);
  }
  for (; j < scores; j += 8) {
    const int count = scores - j < 8 ? static_cast<int>(scores - j) : 8;
    __m256 a = _mm256_load_ps(row + j);
    if (masked && s.mask != nullptr) {
      a = _mm256_add_ps(a, load_part8(s.mask + r * s.mask_row_stride + j, count));
    } else if (masked) {
      a = _mm256_add_ps(a, kept8(s.keep + r * s.mask_row_stride + j, count));
    }
    if (count < 8) a = _mm256_blendv_ps(lowest, a, _mm256_castsi256_ps(lane_mask8(count)));
    if (masked || count < 8) _mm256_store_ps(row + j, a);
    largest[0] = _mm256_max_ps(a, largest[0]);
  }
  return max_lanes8(_mm256_max_ps(largest[0], largest[1]));
}

// row = exp(row - base), zeros from `scores` to `used`, and the sum.
float exp_and_sum(float* row, int64_t scores, int64_t used, float base) {
  const __m256 b = _mm256_set1_ps(base);
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  int64_t j = 0;
  for (; j + 16 <= scores; j += 16) {
    const __m256 e0 = exp_negative8(_mm256_sub_ps(_mm256_load_ps(row + j), b));
    const __m256 e1 = exp_negative8(_mm256_sub_ps(_mm256_load_ps(row + j + 8), b));
    _mm256_store_ps(row + j, e0);
    _mm256_store_ps(row + j + 8, e1);
    sum[0] = _mm256_add_ps(sum[0], e0);
    sum[1] = _mm256_add_ps(sum[1], e1);
  }
  for (; j < scores; j += 8) {
    const __m256 e = exp_negative8(_mm256_sub_ps(_mm256_load_ps(row + j), b));
    _mm256_store_ps(row + j, e);
    sum[0] = _mm256_add_ps(sum[0], e);
  }
  for (; j < used; j += 8) _mm256_store_ps(row + j, _mm256_setzero_ps());
  return add_lanes8(_mm256_add_ps(sum[0], sum[1]));
}

inline int64_t scores_of(const AttentionSoftmaxStep& s, int r) {
  const int64_t some = s.visible + r * s.growth;
  return some < 0 ? 0 : some < s.used ? some : s.used;
}

}  // namespace

void attention_softmax_avx2(const AttentionSoftmaxStep& s) {
  const float lowest = -__builtin_inff();
  alignas(32) float base[8] = {}, before[8] = {};
  for (int r = 0; r < s.count; ++r) {
    const float block = mask_and_max(s, r, scores_of(s, r)), old = s.largest[r];
    const float largest = block > old ? block : old;
    base[r] = largest == lowest ? 0.0f : largest;  // all masked so far: exp(-inf) is 0 with any number
    before[r] = old;
    s.largest[r] = largest;
  }
  // exp(-inf) is 0: nothing was summed before.
  _mm256_store_ps(before, exp_negative8(_mm256_sub_ps(_mm256_load_ps(before), _mm256_load_ps(base))));
  for (int r = 0; r < s.count; ++r) {
    const float sum = exp_and_sum(s.rows + r * s.stride, scores_of(s, r), s.used, base[r]);
    s.before[r] = before[r];
    // The same factor that the values step applies to the result so far: sum and result stay relative to
    // one maximum.
    s.sum[r] = s.sum[r] * before[r] + sum;
  }
}

}  // namespace halftone::kernels
