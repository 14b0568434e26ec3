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
bool multiply_s7(const Int8LinearBlock& b, int32_t* tile) {
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
  return false;
}

// A fourth instruction, the xor, may run on any port. Measured on Zen 3: 86 % of the three-instruction chain,
// where a sign instruction reaches 77 %, widening to 16 bits 77 to 80 %. Four rows, not six: the mask needs a
// register too.
template <int R, int P>
bool multiply_s8(const Int8LinearBlock& b, int32_t* tile) {
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
  return false;
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

// 16 bytes to `out` and 16 to `out + apart`.
inline void store_lanes(__m256i v, uint8_t* out, int64_t apart) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(v));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out + apart), _mm256_extracti128_si256(v, 1));
}

// Quads i, i + 1 and i + 4, i + 5 of two rows, eight bytes each.
inline void store_pairs(__m256i v, uint8_t* out, int64_t step) {
  alignas(32) int64_t pairs[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(pairs), v);
  __builtin_memcpy(out, &pairs[0], 8);
  __builtin_memcpy(out + step, &pairs[1], 8);
  __builtin_memcpy(out + 4 * step, &pairs[2], 8);
  __builtin_memcpy(out + 5 * step, &pairs[3], 8);
}

// Packed rows: four k of each row in turn (quads), so that a kernel walks through one stream of memory for
// all rows of its block and each broadcast4 is a load of four neighbouring bytes.
// One row from `quad` on into every `count`-th place of four bytes.
void interleave1(const uint8_t* q, int count, int64_t quad, int64_t k, __m256i flips, uint8_t* packed) {
  const int64_t quads = (k + 3) / 4;
  for (; quad < quads; quad += 8) {
    alignas(32) int32_t fours[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(fours), load_bytes(q + quad * 4, k - quad * 4, flips));
    const int n = quads - quad < 8 ? static_cast<int>(quads - quad) : 8;
    uint8_t* out = packed + quad * count * 4;
    for (int i = 0; i < n; ++i, out += count * 4) __builtin_memcpy(out, &fours[i], 4);
  }
}

void interleave2(const uint8_t* q, int64_t stride, int count, int64_t k, __m256i flips, uint8_t* packed) {
  int64_t quad = 0;
  const int64_t step = int64_t{count} * 4;
  for (; quad * 4 + 32 <= k; quad += 8) {
    const uint8_t* at = q + quad * 4;
    const __m256i a = load_bytes(at, 32, flips), b = load_bytes(at + stride, 32, flips);
    const __m256i pairs[2] = {_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)};  // 01 45, 23 67
    uint8_t* out = packed + quad * step;
    store_pairs(pairs[0], out, step);
    store_pairs(pairs[1], out + 2 * step, step);
  }
  for (int r = 0; r < 2; ++r) interleave1(q + r * stride, count, quad, k, flips, packed + r * 4);
}

void interleave4(const uint8_t* q, int64_t stride, int count, int64_t k, __m256i flips, uint8_t* packed) {
  int64_t quad = 0;
  const int64_t step = int64_t{count} * 4;
  for (; quad * 4 + 32 <= k; quad += 8) {
    const uint8_t* at = q + quad * 4;
    const __m256i a = load_bytes(at, 32, flips), b = load_bytes(at + stride, 32, flips);
    const __m256i c = load_bytes(at + 2 * stride, 32, flips), d = load_bytes(at + 3 * stride, 32, flips);
    const __m256i ab0 = _mm256_unpacklo_epi32(a, b), ab1 = _mm256_unpackhi_epi32(a, b);
    const __m256i cd0 = _mm256_unpacklo_epi32(c, d), cd1 = _mm256_unpackhi_epi32(c, d);
    store_lanes(_mm256_unpacklo_epi64(ab0, cd0), packed + quad * step, 4 * step);
    store_lanes(_mm256_unpackhi_epi64(ab0, cd0), packed + (quad + 1) * step, 4 * step);
    store_lanes(_mm256_unpacklo_epi64(ab1, cd1), packed + (quad + 2) * step, 4 * step);
    store_lanes(_mm256_unpackhi_epi64(ab1, cd1), packed + (quad + 3) * step, 4 * step);
  }
  for (int r = 0; r < 4; ++r) interleave1(q + r * stride, count, quad, k, flips, packed + r * 4);
}

// Eight quads of a row as |x| and sign mask, four bytes each: quads 0 1 4 5 and 2 3 6 7.
struct Split {
  __m256i first, second;
};

inline Split split(__m256i x, __m256i& negative) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i mask = _mm256_cmpgt_epi8(zero, x), magnitude = _mm256_abs_epi8(x);
  // Σ |x| over x < 0, the second term of x · w in int8_linear.h. vpsadbw adds eight bytes into a 64-bit
  // lane, which cannot overflow.
  negative = _mm256_add_epi64(negative, _mm256_sad_epu8(_mm256_and_si256(magnitude, mask), zero));
  return {_mm256_unpacklo_epi32(magnitude, mask), _mm256_unpackhi_epi32(magnitude, mask)};
}

// The first n quads of one row.
inline void store_split(const Split& s, int n, int count, uint8_t* out) {
  alignas(32) int64_t pairs[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(pairs), s.first);
  _mm256_store_si256(reinterpret_cast<__m256i*>(pairs + 4), s.second);
  constexpr int kPlace[8] = {0, 1, 4, 5, 2, 3, 6, 7};
  for (int i = 0; i < n; ++i, out += count * 8) __builtin_memcpy(out, &pairs[kPlace[i]], 8);
}

// All eight quads of two neighbouring rows.
inline void store_split2(const Split& a, const Split& b, int count, uint8_t* out) {
  const int64_t step = int64_t{count} * 8;
  store_lanes(_mm256_unpacklo_epi64(a.first, b.first), out, 4 * step);
  store_lanes(_mm256_unpackhi_epi64(a.first, b.first), out + step, 4 * step);
  store_lanes(_mm256_unpacklo_epi64(a.second, b.second), out + 2 * step, 4 * step);
  store_lanes(_mm256_unpackhi_epi64(a.second, b.second), out + 3 * step, 4 * step);
}

int32_t horizontal_sum(__m256i v) {  // of four 64-bit sums
  const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  return static_cast<int32_t>(_mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two))));
}

}  // namespace

void int8_pack_rows_avx2(const uint8_t* q, int64_t stride, int count, int64_t k, uint8_t flip,
                         uint8_t* packed, int32_t* row_add) {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  int r = 0;
  for (; r + 4 <= count; r += 4) interleave4(q + r * stride, stride, count, k, flips, packed + r * 4);
  for (; r + 2 <= count; r += 2) interleave2(q + r * stride, stride, count, k, flips, packed + r * 4);
  if (r < count) interleave1(q + r * stride, count, 0, k, flips, packed + r * 4);
  for (r = 0; r < count; ++r) row_add[r] = 0;
}

// Bytes arrive as u8, or as s8 to be flipped to u8; minus 128 is one more flip. A padded k has |x| = 0.
void int8_pack_rows_split_avx2(const uint8_t* q, int64_t stride, int count, int64_t k, uint8_t flip,
                               uint8_t* packed, int32_t* row_add) {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip ^ 0x80));
  const int64_t quads = (k + 3) / 4;
  for (int r = 0; r < count; r += 2) {
    __m256i negative[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    const bool two = r + 1 < count;
    for (int64_t quad = 0; quad < quads; quad += 8) {
      const uint8_t* at = q + r * stride + quad * 4;
      const int64_t left = k - quad * 4;
      const Split a = split(load_bytes(at, left, flips), negative[0]);
      const Split b = two ? split(load_bytes(at + stride, left, flips), negative[1]) : a;
      uint8_t* out = packed + (quad * count + r) * 8;
      if (two && left >= 32) {
        store_split2(a, b, count, out);
      } else {
        const int n = quads - quad < 8 ? static_cast<int>(quads - quad) : 8;
        store_split(a, n, count, out);
        if (two) store_split(b, n, count, out + 8);
      }
    }
    row_add[r] = horizontal_sum(negative[0]);
    if (two) row_add[r + 1] = horizontal_sum(negative[1]);
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
