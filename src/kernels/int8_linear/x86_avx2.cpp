// int8_linear for AVX2: blocks of up to 6 rows (7-bit weights) or 4 rows (8-bit weights) times 16 columns,
// all sums in registers. Compiled for AVX2: no inline code from elsewhere. Loops over registers are unrolled
// by pragma, or the sums would live in memory.
#include "kernels/int8_linear/x86_avx2_finish.h"

namespace halftone::kernels {
namespace {

constexpr int kPanel = 16;

inline __m256i load32(const int8_t* p) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
}

// One stream of addresses does not fill the way to memory. Several panels at once are several streams
// already; one panel is fetched 1 KB ahead into the first-level cache, and the panel after it into the
// second, through four streams (see Int8LinearBlock::next).
template <int P>
inline void fetch_ahead(const Int8LinearBlock& b, const int8_t* w, int64_t quad) {
  if (P > 1) return;
  _mm_prefetch(reinterpret_cast<const char*>(w) + 1024, _MM_HINT_T0);
  _mm_prefetch(
      reinterpret_cast<const char*>(b.next) + (quad & 3) * b.next_quarter + (quad >> 2) * b.next_step,
      _MM_HINT_T1);
}

// maddubs with weights that stay in memory: six rows leave no register for them, and the compiler would keep
// a sum in memory instead.
inline __m256i maddubs_from(__m256i x, const int8_t* w) {
  __m256i products;
  __asm__("vpmaddubsw %2, %1, %0" : "=x"(products) : "x"(x), "m"(*reinterpret_cast<const __m256i*>(w)));
  return products;
}

template <int R, int P>
inline void clear(__m256i (&sum)[P][R][2]) {
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) sum[p][r][0] = sum[p][r][1] = _mm256_setzero_si256();
  }
}

template <int R, int P>
inline void store(const __m256i (&sum)[P][R][2], int32_t* tile) {
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(tile + (p * R + r) * kPanel), sum[p][r][0]);
      _mm256_store_si256(reinterpret_cast<__m256i*>(tile + (p * R + r) * kPanel + 8), sum[p][r][1]);
    }
  }
}

// R rows times P panels. Three instructions for 32 products; the multiplications bound it at one a cycle on
// Zen 3.
template <int R, int P>
void multiply_s7(const Int8LinearBlock& b, int32_t* tile) {
  __m256i sum[P][R][2];
  clear<R, P>(sum);
  const __m256i ones = _mm256_set1_epi16(1);
  const uint8_t* x = b.rows;
  const int8_t* w = b.panel;
  for (int64_t quad = 0; quad < b.quads; ++quad, x += R * 4, w += kPanel * 4) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      const __m256i w0 = load32(w + p * b.panel_bytes);
      const int8_t* w1 = w + p * b.panel_bytes + 32;
      fetch_ahead<P>(b, w, quad);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const __m256i four = broadcast4(x + r * 4);
        sum[p][r][0] =
            _mm256_add_epi32(sum[p][r][0], _mm256_madd_epi16(_mm256_maddubs_epi16(four, w0), ones));
        sum[p][r][1] = _mm256_add_epi32(sum[p][r][1], _mm256_madd_epi16(maddubs_from(four, w1), ones));
      }
    }
  }
  store<R, P>(sum, tile);
}

// A fourth instruction, the xor, may run on any port. Measured on Zen 3: 86 % of the three-instruction chain,
// where a sign instruction reaches 77 %, widening to 16 bits 77 to 80 %. Four rows, not six: the mask needs a
// register too.
template <int R, int P>
void multiply_s8(const Int8LinearBlock& b, int32_t* tile) {
  __m256i sum[P][R][2];
  clear<R, P>(sum);
  const __m256i ones = _mm256_set1_epi16(1);
  const uint8_t* x = b.rows;
  const int8_t* w = b.panel;
  for (int64_t quad = 0; quad < b.quads; ++quad, x += R * 8, w += kPanel * 4) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      const __m256i w0 = load32(w + p * b.panel_bytes), w1 = load32(w + p * b.panel_bytes + 32);
      fetch_ahead<P>(b, w, quad);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const __m256i magnitude = broadcast4(x + r * 8), mask = broadcast4(x + r * 8 + 4);
        const __m256i p0 = _mm256_maddubs_epi16(magnitude, _mm256_xor_si256(mask, w0));
        const __m256i p1 = _mm256_maddubs_epi16(magnitude, _mm256_xor_si256(mask, w1));
        sum[p][r][0] = _mm256_add_epi32(sum[p][r][0], _mm256_madd_epi16(p0, ones));
        sum[p][r][1] = _mm256_add_epi32(sum[p][r][1], _mm256_madd_epi16(p1, ones));
      }
    }
  }
  store<R, P>(sum, tile);
}

// Up to 32 bytes of a row, zero beyond k. Zeros must come after the flip: a padded k adds nothing then.
inline __m256i load_bytes(const uint8_t* q, int64_t left, __m256i flip) {
  if (left >= 32) return _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(q)), flip);
  alignas(32) uint8_t bytes[32] = {};
  alignas(32) uint8_t flips[32];
  _mm256_store_si256(reinterpret_cast<__m256i*>(flips), flip);
  for (int64_t i = 0; i < left; ++i) bytes[i] = q[i] ^ flips[i];
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes));
}

int32_t horizontal_sum(__m256i v) {  // of four 64-bit sums
  const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  return static_cast<int32_t>(_mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two))));
}

}  // namespace

void int8_pack_rows_avx2(const uint8_t* q, int64_t stride, int count, int64_t k, uint8_t flip,
                         uint8_t* packed, int32_t* row_add) {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  const int64_t quads = (k + 3) / 4;
  for (int r = 0; r < count; ++r) {
    row_add[r] = 0;
    for (int64_t quad = 0; quad < quads; quad += 8) {
      alignas(32) int32_t fours[8];
      _mm256_store_si256(reinterpret_cast<__m256i*>(fours),
                         load_bytes(q + r * stride + quad * 4, k - quad * 4, flips));
      const int n = quads - quad < 8 ? static_cast<int>(quads - quad) : 8;
      uint8_t* out = packed + (quad * count + r) * 4;
      for (int i = 0; i < n; ++i, out += count * 4) __builtin_memcpy(out, &fours[i], 4);
    }
  }
}

// Bytes arrive as u8, or as s8 to be flipped to u8; minus 128 is one more flip. A padded k has |x| = 0.
void int8_pack_rows_split_avx2(const uint8_t* q, int64_t stride, int count, int64_t k, uint8_t flip,
                               uint8_t* packed, int32_t* row_add) {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip ^ 0x80));
  const __m256i zero = _mm256_setzero_si256();
  const int64_t quads = (k + 3) / 4;
  for (int r = 0; r < count; ++r) {
    __m256i negative = zero;
    for (int64_t quad = 0; quad < quads; quad += 8) {
      const __m256i x = load_bytes(q + r * stride + quad * 4, k - quad * 4, flips);
      const __m256i mask = _mm256_cmpgt_epi8(zero, x), magnitude = _mm256_abs_epi8(x);
      negative = _mm256_add_epi64(negative, _mm256_sad_epu8(_mm256_and_si256(magnitude, mask), zero));
      alignas(32) int64_t pairs[8];  // quads 0 1 4 5 2 3 6 7
      _mm256_store_si256(reinterpret_cast<__m256i*>(pairs), _mm256_unpacklo_epi32(magnitude, mask));
      _mm256_store_si256(reinterpret_cast<__m256i*>(pairs + 4), _mm256_unpackhi_epi32(magnitude, mask));
      constexpr int kPlace[8] = {0, 1, 4, 5, 2, 3, 6, 7};
      const int n = quads - quad < 8 ? static_cast<int>(quads - quad) : 8;
      uint8_t* out = packed + (quad * count + r) * 8;
      for (int i = 0; i < n; ++i, out += count * 8) __builtin_memcpy(out, &pairs[kPlace[i]], 8);
    }
    row_add[r] = horizontal_sum(negative);
  }
}

void int8_compute_s7_avx2(const Int8LinearBlock& b) {
  static constexpr Multiply kOnePanel[] = {multiply_s7<1, 1>, multiply_s7<2, 1>, multiply_s7<3, 1>,
                                           multiply_s7<4, 1>, multiply_s7<5, 1>, multiply_s7<6, 1>};
  static constexpr Multiply kPanels[] = {multiply_s7<1, 4>, multiply_s7<2, 2>, multiply_s7<3, 2>};
  compute(b, kPanel, int8_panels_at_once(b.count), kPanels, kOnePanel);
}

void int8_compute_s8_avx2(const Int8LinearBlock& b) {
  static constexpr Multiply kOnePanel[] = {multiply_s8<1, 1>, multiply_s8<2, 1>, multiply_s8<3, 1>,
                                           multiply_s8<4, 1>};
  static constexpr Multiply kPanels[] = {multiply_s8<1, 4>, multiply_s8<2, 2>, multiply_s8<3, 2>};
  compute(b, kPanel, int8_panels_at_once(b.count), kPanels, kOnePanel);
}

}  // namespace halftone::kernels
