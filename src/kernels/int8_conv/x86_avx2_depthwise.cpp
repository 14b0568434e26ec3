// Depthwise int8_conv for AVX2: 16 channels at a time, two taps in each vpmaddwd. Compiled for AVX2: no
// inline code from elsewhere.
#include "kernels/int8_conv/x86_avx2_finish.h"

namespace halftone::kernels {
namespace {

constexpr int kChannels = 16;

// Two taps of 16 channels: their bytes become neighbours, then 16-bit numbers, and each pair is multiplied by
// the pair of weights. 255 · 128 · 2 fits 32 bits, nothing saturates.
inline void add_pair(__m128i first, __m128i second, const int8_t* w, __m256i& sum0, __m256i& sum1) {
  const __m256i lo = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(first, second));
  const __m256i hi = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(first, second));
  sum0 =
      _mm256_add_epi32(sum0, _mm256_madd_epi16(lo, _mm256_load_si256(reinterpret_cast<const __m256i*>(w))));
  sum1 = _mm256_add_epi32(sum1,
                          _mm256_madd_epi16(hi, _mm256_load_si256(reinterpret_cast<const __m256i*>(w + 32))));
}

template <bool Whole>
inline void channels16(const Int8DepthwiseBlock& b, int row, int c) {
  const uint8_t* const* rows = b.rows + row * b.pairs * 2;
  const int8_t* w = b.panels + c / kChannels * b.panel_bytes;
  const int count = Whole ? kChannels : b.out.columns - c;
  __m256i sum0 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b.out.start + c));
  __m256i sum1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b.out.start + c + 8));
  for (int64_t pair = 0; pair < b.pairs; ++pair, w += kChannels * 4) {
    add_pair(load_bytes16(rows[pair * 2] + c, count), load_bytes16(rows[pair * 2 + 1] + c, count), w, sum0,
             sum1);
  }
  finish16(b.out, row, c, sum0, sum1);
}

}  // namespace

void int8_depthwise_avx2(const Int8DepthwiseBlock& b) {
  for (int r = 0; r < b.count; ++r) {
    int c = 0;
    for (; c + kChannels <= b.out.columns; c += kChannels) channels16<true>(b, r, c);
    if (c < b.out.columns) channels16<false>(b, r, c);
  }
}

}  // namespace halftone::kernels
