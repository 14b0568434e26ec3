// int4_dynamic_linear for AVX2: blocks of up to 6 rows times 16 columns, twelve 16-bit sums in registers for
// 32 k, then folded into float sums in first-level cache. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/common/x86_avx2_math.h"
#include "kernels/int4_dynamic_linear/kernels.h"

namespace halftone::kernels {
namespace {

constexpr int kPanel = 16;
constexpr int kRows = 6;

inline __m256i load32(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

inline __m256i broadcast4(const uint8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  return _mm256_set1_epi32(four);
}

// sum + Σ of products of 16-bit lanes. The empty assembly keeps the additions in order: the compiler would
// otherwise add all products of a block at the end, from memory, at half the speed.
inline void add_products(__m256i& sum, __m256i w, __m256i four) {
  sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, four));
  __asm__("" : "+x"(sum));
}

// 32 k of R rows times 16 columns, in pairs of 16-bit sums.
template <int R>
inline void dot(const uint8_t* x, const uint8_t* data, __m256i (&sum)[R][2]) {
  const __m256i mask = _mm256_set1_epi8(15);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = broadcast4(x + R * 32 + r * 4);
#pragma GCC unroll 8
  for (int quad = 0; quad < 8; ++quad) {
    __m256i w0 = load32(data + quad / 2 * kPanel * 4), w1 = load32(data + quad / 2 * kPanel * 4 + 32);
    if (quad % 2 == 1) {
      w0 = _mm256_srli_epi16(w0, 4);
      w1 = _mm256_srli_epi16(w1, 4);
    }
    w0 = _mm256_and_si256(w0, mask);
    w1 = _mm256_and_si256(w1, mask);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i four = broadcast4(x + (quad * R + r) * 4);
      add_products(sum[r][0], w0, four);
      add_products(sum[r][1], w1, four);
    }
  }
}

// sums += float(a) · (sx · sw) for R rows and 16 columns.
template <int R, Int4ZeroPoints Z>
inline void fold(const uint8_t* x, const __m256i (&pairs)[R][2], const uint8_t* chunk, int64_t zero_offset,
                 float* sums) {
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const __m256 scale = _mm256_loadu_ps(reinterpret_cast<const float*>(chunk) + h * 8);
    __m256 zero = _mm256_setzero_ps();
    if (Z == Int4ZeroPoints::kFloats)
      zero = _mm256_loadu_ps(reinterpret_cast<const float*>(chunk + zero_offset) + h * 8);
    if (Z == Int4ZeroPoints::kIntegers) {
      zero = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(
          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(chunk + zero_offset + h * 8))));
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      __m256 a = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs[r][h], ones));
      if (Z != Int4ZeroPoints::kNone) {
        const __m256 sum_x = _mm256_cvtepi32_ps(broadcast4(x + R * 36 + r * 4));
        a = _mm256_fnmadd_ps(zero, sum_x, a);  // exact where zero is an integer: all are below 2^24
      }
      const __m256 both = _mm256_mul_ps(_mm256_castsi256_ps(broadcast4(x + R * 40 + r * 4)), scale);
      float* at = sums + r * kPanel + h * 8;
      _mm256_store_ps(at, _mm256_fmadd_ps(a, both, _mm256_load_ps(at)));
    }
  }
}

template <int R, Int4ZeroPoints Z>
void multiply(const Int4DynamicStep& s) {
  const Int4DynamicPacked& w = *s.weights;
  const uint8_t* x = s.rows;
  const uint8_t* chunk = w.panels + s.panel * w.panel_bytes;
  for (int i = 0; i < s.panels * R * kPanel; i += 8) _mm256_store_ps(s.sums + i, _mm256_setzero_ps());
  for (int64_t k = 0; k < w.k; k += w.group, chunk += w.chunk_bytes) {
    for (int64_t data = w.data_offset; data < w.chunk_bytes; data += kInt4DynamicBlock * kPanel / 2) {
      for (int p = 0; p < s.panels; ++p) {
        const uint8_t* at = chunk + p * w.panel_bytes;
        __m256i pairs[R][2];
        dot<R>(x, at + data, pairs);
        fold<R, Z>(x, pairs, at, w.zero_offset, s.sums + p * R * kPanel);
      }
      x += R * kInt4DynamicRowBytes;
    }
  }
}

// sx, or NaN if any of the 32 is not finite; max_ps alone would lose a NaN.
inline float block_scale(const __m256 (&x)[4]) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256 largest = _mm256_setzero_ps(), odd = largest;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    largest = _mm256_max_ps(largest, _mm256_andnot_ps(sign, x[i]));
    odd = _mm256_add_ps(odd, _mm256_sub_ps(x[i], x[i]));  // 0 if finite, else NaN
  }
  if (_mm256_movemask_ps(_mm256_cmp_ps(odd, odd, _CMP_UNORD_Q)) != 0) return __builtin_nanf("");
  __m128 most = _mm_max_ps(_mm256_castps256_ps128(largest), _mm256_extractf128_ps(largest, 1));
  most = _mm_max_ps(most, _mm_movehl_ps(most, most));
  const float scale = _mm_cvtss_f32(_mm_max_ss(most, _mm_movehdup_ps(most))) / 127.0f;
  constexpr float kSmallest = 1.17549435e-38f;  // FLT_MIN
  return scale < kSmallest ? kSmallest : scale;
}

// 32 bytes in order. |x / scale| is at most 127 up to one rounding, so rint and the packs need no clamp.
inline __m256i quantize32(const __m256 (&x)[4], float scale) {
  const __m256 inverse = _mm256_set1_ps(1.0f / scale);
  __m256i q[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x[i], inverse));
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Two 16-bit sums: of bytes 0 and 1, and of bytes 2 and 3, of all eight lanes.
inline int32_t pair_sums(__m256i q) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
  __m128i sum = _mm_add_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0xb1)));
}

inline void store4(uint8_t* p, int32_t v) {
  __builtin_memcpy(p, &v, 4);
}

using Multiply = void (*)(const Int4DynamicStep&);
template <Int4ZeroPoints Z>
constexpr Multiply kMultiplyRows[kRows] = {multiply<1, Z>, multiply<2, Z>, multiply<3, Z>,
                                           multiply<4, Z>, multiply<5, Z>, multiply<6, Z>};

}  // namespace

void int4_dynamic_prepare_avx2(const float* x, int64_t k, int row, int count, uint8_t* records) {
  uint8_t* at = records + row * 4;
  for (; k > 0; k -= kInt4DynamicBlock, x += kInt4DynamicBlock, at += count * kInt4DynamicRowBytes) {
    const __m256 v[4] = {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8), _mm256_loadu_ps(x + 16),
                         _mm256_loadu_ps(x + 24)};
    const float scale = block_scale(v);
    const __m256i q = scale == scale ? quantize32(v, scale) : _mm256_setzero_si256();
    alignas(32) int32_t quads[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(quads), q);
    for (int i = 0; i < 8; ++i) store4(at + i * count * 4, quads[i]);
    const int32_t pairs = pair_sums(q);
    const int32_t low = static_cast<int16_t>(pairs), high = pairs >> 16;
    store4(at + count * 32,
           static_cast<uint16_t>(-8 * low) | static_cast<int32_t>(-8u * static_cast<uint32_t>(high) << 16));
    store4(at + count * 36, low + high);
    __builtin_memcpy(at + count * 40, &scale, 4);
  }
}

void int4_dynamic_multiply_avx2(const Int4DynamicStep& s) {
  using enum Int4ZeroPoints;
  static constexpr const Multiply* kMultiply[] = {kMultiplyRows<kNone>, kMultiplyRows<kIntegers>,
                                                  kMultiplyRows<kFloats>};
  kMultiply[static_cast<int>(s.weights->zero_points)][s.count - 1](s);
}

}  // namespace halftone::kernels
