// int8_conv for AVX2: blocks of up to 12 pixels times 16 columns, cut into tiles whose sums stay in
// registers. Compiled for AVX2: no inline code from elsewhere. Loops over registers are unrolled by pragma,
// or the sums would live in memory.
#include "kernels/int8_conv/x86_avx2_finish.h"

namespace halftone::kernels {
namespace {

constexpr int kPanel = 16;

struct [[gnu::packed, gnu::may_alias]] FourBytes {
  int32_t value;
};

inline const FourBytes& four_at(const uint8_t* p) {
  return *reinterpret_cast<const FourBytes*>(p);
}

inline __m256i broadcast4(const uint8_t* p) {
  return _mm256_set1_epi32(four_at(p).value);
}

inline __m256i load32(const int8_t* p) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
}

alignas(32) constexpr int16_t kOnes[kPanel] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

template <int R>
struct Tile {
  __m256i sum[R][2];
  const uint8_t* row[R];
};

template <int R>
inline void start_sums(Tile<R>& tile, const int32_t* start) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    tile.sum[r][0] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(start));
    tile.sum[r][1] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(start + 8));
  }
}

// D quads times R pixels. D results of vpmaddubsw are added in 16 bits before vpmaddwd widens their sum.
// Three pixels take all sixteen registers (six sums of 32 bits, six of 16, two weights, two for the
// products), and only just: the compiler would keep sums in memory, so registers are counted by hand. Zen 3,
// one core, GOPS: 199 with D = 1 and six pixels, 237 with 2, 272 with 4, 283 with 8.
template <int R, int D>
inline void deep_step(Tile<R>& tile, int64_t at, const int8_t* w) {
  __m256i sum16[R][2];
#pragma GCC unroll 8
  for (int d = 0; d < D; ++d) {
    __m256i w0, w1;
    __asm__ volatile("vmovdqa %1, %0" : "=x"(w0) : "m"(*reinterpret_cast<const __m256i*>(w + d * 64)));
    __asm__ volatile("vmovdqa %1, %0" : "=x"(w1) : "m"(*reinterpret_cast<const __m256i*>(w + d * 64 + 32)));
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const FourBytes& x = four_at(tile.row[r] + at + d * 4);
      if (d == 0) {
        __asm__ volatile(
            "vpbroadcastd %[x], %[b]\n\t"
            "vpmaddubsw %[w0], %[b], %[a]\n\t"
            "vpmaddubsw %[w1], %[b], %[b]"
            : [a] "=&x"(sum16[r][0]), [b] "=&x"(sum16[r][1])
            : [x] "m"(x), [w0] "x"(w0), [w1] "x"(w1));
      } else {
        __m256i bytes, products;
        __asm__ volatile(
            "vpbroadcastd %[x], %[c]\n\t"
            "vpmaddubsw %[w0], %[c], %[p]\n\t"
            "vpaddw %[p], %[a], %[a]\n\t"
            "vpmaddubsw %[w1], %[c], %[c]\n\t"
            "vpaddw %[c], %[b], %[b]"
            : [a] "+x"(sum16[r][0]), [b] "+x"(sum16[r][1]), [c] "=&x"(bytes), [p] "=&x"(products)
            : [x] "m"(x), [w0] "x"(w0), [w1] "x"(w1));
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      __asm__ volatile(
          "vpmaddwd %[ones], %[a], %[a]\n\t"
          "vpaddd %[a], %[s], %[s]"
          : [a] "+x"(sum16[r][i]), [s] "+x"(tile.sum[r][i])
          : [ones] "m"(*reinterpret_cast<const __m256i*>(kOnes)));
    }
  }
}

// One tap of a panel of depth D; what is left of the quads in smaller steps.
template <int R, int D>
inline void deep_tap(Tile<R>& tile, const int8_t* w, int64_t quads) {
  int64_t q = 0;
  for (; q + D <= quads; q += D) deep_step<R, D>(tile, q * 4, w + q * 64);
  if (D > 4 && q + 4 <= quads) {
    deep_step<R, 4>(tile, q * 4, w + q * 64);
    q += 4;
  }
  for (; q < quads; ++q) deep_step<R, 1>(tile, q * 4, w + q * 64);
}

// maddubs with weights that stay in memory: six rows leave no register for them, and the compiler would keep
// a sum in memory instead.
inline __m256i maddubs_from(__m256i x, const int8_t* w) {
  __m256i products;
  __asm__("vpmaddubsw %2, %1, %0" : "=x"(products) : "x"(x), "m"(*reinterpret_cast<const __m256i*>(w)));
  return products;
}

// Depth 1: three instructions for 32 products.
template <int R>
inline void chain_tap(Tile<R>& tile, const int8_t* w, int64_t quads) {
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t at = 0; at < quads * 4; at += 4, w += kPanel * 4) {
    const __m256i w0 = load32(w);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i four = broadcast4(tile.row[r] + at);
      tile.sum[r][0] =
          _mm256_add_epi32(tile.sum[r][0], _mm256_madd_epi16(_mm256_maddubs_epi16(four, w0), ones));
      tile.sum[r][1] = _mm256_add_epi32(tile.sum[r][1], _mm256_madd_epi16(maddubs_from(four, w + 32), ones));
    }
  }
}

// Rows are split: x · w = |x| · (w ^ mask) + |x| where the mask is -1; the last term was summed in front of
// the row.
template <int R>
inline void split_tap(Tile<R>& tile, const int8_t* w, int64_t quads) {
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const __m256i add = broadcast4(tile.row[r] - kSplitFront);
    tile.sum[r][0] = _mm256_add_epi32(tile.sum[r][0], add);
    tile.sum[r][1] = _mm256_add_epi32(tile.sum[r][1], add);
  }
  for (int64_t at = 0; at < quads * 8; at += 8, w += kPanel * 4) {
    const __m256i w0 = load32(w), w1 = load32(w + 32);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i magnitude = broadcast4(tile.row[r] + at), mask = broadcast4(tile.row[r] + at + 4);
      const __m256i p0 = _mm256_maddubs_epi16(magnitude, _mm256_xor_si256(mask, w0));
      const __m256i p1 = _mm256_maddubs_epi16(magnitude, _mm256_xor_si256(mask, w1));
      tile.sum[r][0] = _mm256_add_epi32(tile.sum[r][0], _mm256_madd_epi16(p0, ones));
      tile.sum[r][1] = _mm256_add_epi32(tile.sum[r][1], _mm256_madd_epi16(p1, ones));
    }
  }
}

constexpr int kSplitRows = -1;  // in place of a depth

// `tiles` times R pixels from `first` on; `lines` of what comes next are fetched for each.
template <int R, int D>
void multiply(const Int8ConvBlock& b, int first, int tiles, const int8_t* next, int64_t lines) {
  const int64_t quads = b.quads, tap_bytes = quads * kPanel * 4;
  for (; tiles > 0; --tiles, first += R) {
    for (int64_t line = 0; line < lines; ++line, next += 64)
      _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
    Tile<R> tile;
    start_sums(tile, b.out.start);
    const uint8_t* const* rows = b.rows + first;
    for (int64_t t = 0; t < b.taps; ++t, rows += b.rows_stride) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) tile.row[r] = rows[r];
      const int8_t* w = b.panel + b.tap[t] * tap_bytes;
      if constexpr (D == kSplitRows) {
        split_tap<R>(tile, w, quads);
      } else if constexpr (D == 1) {
        chain_tap<R>(tile, w, quads);
      } else {
        deep_tap<R, D>(tile, w, quads);
      }
    }
    if constexpr (D != kSplitRows) {
      for (int e = 0; e < b.extras; ++e) {
        const uint8_t* const* extra_rows = b.rows + b.extra_quads[e].tap * b.rows_stride + first;
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) tile.row[r] = extra_rows[r] + b.extra_quads[e].offset;
        if constexpr (D == 1) {
          chain_tap<R>(tile, b.extra_weights + e * kPanel * 4, 1);
        } else {
          deep_step<R, 1>(tile, 0, b.extra_weights + e * kPanel * 4);
        }
      }
    }
    finish_rows<R>(b.out, first, tile.sum);
  }
}

using Multiply = void (*)(const Int8ConvBlock&, int first, int tiles, const int8_t* next, int64_t lines);

// Tiles of at most `tallest` pixels, as even as possible, by[rows - 1] for each.
inline void run_tiles(const Int8ConvBlock& b, int tallest, const Multiply* by) {
  const int tiles = (b.count + tallest - 1) / tallest, rows = b.count / tiles, taller = b.count % tiles;
  const int64_t lines = (b.next_lines + tiles - 1) / tiles;
  if (taller > 0) by[rows](b, 0, taller, b.next, lines);
  by[rows - 1](b, taller * (rows + 1), tiles - taller, b.next + taller * lines * 64, lines);
}

}  // namespace

void int8_conv_avx2(const Int8ConvBlock& b) {
  static constexpr Multiply kSplit[] = {multiply<1, kSplitRows>, multiply<2, kSplitRows>,
                                        multiply<3, kSplitRows>, multiply<4, kSplitRows>};
  static constexpr Multiply kChain[] = {multiply<1, 1>, multiply<2, 1>, multiply<3, 1>,
                                        multiply<4, 1>, multiply<5, 1>, multiply<6, 1>};
  static constexpr Multiply kDeep2[] = {multiply<1, 2>, multiply<2, 2>, multiply<3, 2>};
  static constexpr Multiply kDeep4[] = {multiply<1, 4>, multiply<2, 4>, multiply<3, 4>};
  static constexpr Multiply kDeep8[] = {multiply<1, 8>, multiply<2, 8>, multiply<3, 8>};
  if (b.split) return run_tiles(b, 4, kSplit);
  switch (b.depth) {
    case 8:
      return run_tiles(b, 3, kDeep8);
    case 4:
      return run_tiles(b, 3, kDeep4);
    case 2:
      return run_tiles(b, 3, kDeep2);
    default:
      return run_tiles(b, 6, kChain);
  }
}

void int8_split_row_avx2(const uint8_t* x, int64_t k, uint8_t* out) {
  const __m256i zero = _mm256_setzero_si256(), flip = _mm256_set1_epi8(static_cast<char>(0x80));
  __m256i negative = zero;
  const auto split32 = [&](const uint8_t* from, uint8_t* to) {
    const __m256i v = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)), flip);
    const __m256i mask = _mm256_cmpgt_epi8(zero, v), magnitude = _mm256_abs_epi8(v);
    negative = _mm256_add_epi64(negative, _mm256_sad_epu8(_mm256_and_si256(magnitude, mask), zero));
    const __m256i lo = _mm256_unpacklo_epi32(magnitude, mask), hi = _mm256_unpackhi_epi32(magnitude, mask);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute2x128_si256(lo, hi, 0x20));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), _mm256_permute2x128_si256(lo, hi, 0x31));
  };
  int64_t at = 0;
  for (; at + 32 <= k; at += 32) split32(x + at, out + at * 2);
  if (at < k) {
    alignas(32) uint8_t bytes[32], quads[64];
    __builtin_memset(bytes, 0x80, sizeof(bytes));  // |x - 128| = 0
    for (int64_t i = at; i < k; ++i) bytes[i - at] = x[i];
    split32(bytes, quads);
    __builtin_memcpy(out + at * 2, quads, static_cast<size_t>((k - at + 3) / 4 * 8));
  }
  alignas(32) int64_t sums[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(sums), negative);
  const auto sum = static_cast<int32_t>(sums[0] + sums[1] + sums[2] + sums[3]);
  __builtin_memcpy(out - kSplitFront, &sum, 4);
}

}  // namespace halftone::kernels
