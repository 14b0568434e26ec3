// attention's two products and its packing for AVX2: blocks of up to 6 rows times 16 columns. Compiled for
// AVX2: no inline code from elsewhere.
#include "kernels/attention/kernels.h"
#include "kernels/attention/x86_products.h"
#include "kernels/common/x86_avx2_math.h"
#include "kernels/fp32_linear/x86_avx2_vectors.h"

namespace halftone::kernels {
namespace {

constexpr int kPanel = kAttentionPanel;

// Eight columns of 8 rows, `count` of which exist, turned, to 8 places of `out` that are 16 floats apart.
template <bool kAll>
inline void transpose8(const float* x, int64_t stride, int64_t count, float* out) {
  const auto load = [&](int r, int c) {
    return kAll || r < count ? _mm_loadu_ps(x + r * stride + c) : _mm_setzero_ps();
  };
  // Halves of rows r and r + 4 side by side, so that one step less crosses the halves of a register.
  __m256 a[8];
#pragma GCC unroll 8
  for (int r = 0; r < 4; ++r) {
    a[r] = _mm256_insertf128_ps(_mm256_castps128_ps256(load(r, 0)), load(r + 4, 0), 1);
    a[r + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(load(r, 4)), load(r + 4, 4), 1);
  }
#pragma GCC unroll 8
  for (int h = 0; h < 8; h += 4) {
    const __m256 t0 = _mm256_unpacklo_ps(a[h], a[h + 1]), t1 = _mm256_unpackhi_ps(a[h], a[h + 1]);
    const __m256 t2 = _mm256_unpacklo_ps(a[h + 2], a[h + 3]), t3 = _mm256_unpackhi_ps(a[h + 2], a[h + 3]);
    _mm256_store_ps(out + (h + 0) * kPanel, _mm256_shuffle_ps(t0, t2, 0x44));
    _mm256_store_ps(out + (h + 1) * kPanel, _mm256_shuffle_ps(t0, t2, 0xee));
    _mm256_store_ps(out + (h + 2) * kPanel, _mm256_shuffle_ps(t1, t3, 0x44));
    _mm256_store_ps(out + (h + 3) * kPanel, _mm256_shuffle_ps(t1, t3, 0xee));
  }
}

// Eight columns, or the first of them.
struct Columns : Avx2Vectors {
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
};
struct FirstColumns : Avx2Vectors {
  __m256i lanes;
  Vector load(const float* p) const { return _mm256_maskload_ps(p, lanes); }
  void store(float* p, Vector v) const { _mm256_maskstore_ps(p, lanes, v); }
};

// Wide blocks of columns first: few rows need many columns for enough independent sums.
template <int R, int C>
void all_columns(const AttentionValuesStep& s) {
  int64_t column = 0;
  for (; column + 8 * C <= s.columns; column += 8 * C) values<R, C>(s, column, Columns{});
  for (; column + 8 <= s.columns; column += 8) values<R, 1>(s, column, Columns{});
  if (column == s.columns) return;
  FirstColumns first;
  first.lanes = lane_mask8(static_cast<int>(s.columns - column));
  values<R, 1>(s, column, first);
}

// The sums of the lanes of four vectors.
inline __m128 add_lanes4(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 all = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
  return _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
}

}  // namespace

void attention_pack_keys_avx2(const float* k, int64_t stride, int64_t count, int64_t d, float* packed) {
  for (int64_t first = 0; first < count; first += kPanel, packed += d * kPanel) {
    const float* rows = k + first * stride;
    const int64_t left = count - first;
    int64_t c = 0;
    for (; c + 8 <= d; c += 8) {
      float* out = packed + c * kPanel;
      (left >= 8 ? transpose8<true> : transpose8<false>)(rows + c, stride, left, out);
      (left >= 16 ? transpose8<true> : transpose8<false>)(rows + 8 * stride + c, stride, left - 8, out + 8);
    }
    for (; c < d; ++c) {
      for (int64_t j = 0; j < kPanel; ++j) packed[c * kPanel + j] = j < left ? rows[j * stride + c] : 0.0f;
    }
  }
}

void attention_pack_values_avx2(const float* v, int64_t stride, int64_t count, int64_t dv, float* packed) {
  for (int64_t first = 0; first < dv; first += kPanel, packed += count * kPanel) {
    const int lo = dv - first < 8 ? static_cast<int>(dv - first) : 8;
    const int hi = dv - first < 8 ? 0 : dv - first < 16 ? static_cast<int>(dv - first - 8) : 8;
    for (int64_t j = 0; j < count; ++j) {
      const float* row = v + j * stride + first;
      _mm256_store_ps(packed + j * kPanel, load_part8(row, lo));
      _mm256_store_ps(packed + j * kPanel + 8, load_part8(row + 8, hi));
    }
  }
}

void attention_scores_avx2(const AttentionScoresStep& s) {
  scores_up_to_6<Avx2Vectors>(s);
}

void attention_scores_row_avx2(const float* q, const float* k, int64_t stride, int64_t count, int64_t d,
                               float scale, float* out) {
  int64_t j = 0;
  for (; j + 4 <= count; j += 4, k += 4 * stride) {
    __m256 sum[4];
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) sum[u] = _mm256_setzero_ps();
    for (int64_t c = 0; c < d; c += 8) {
      const int part = d - c < 8 ? static_cast<int>(d - c) : 8;
      const __m256 x = load_part8(q + c, part);
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) sum[u] = _mm256_fmadd_ps(x, load_part8(k + u * stride + c, part), sum[u]);
    }
    _mm_storeu_ps(out + j, _mm_mul_ps(add_lanes4(sum[0], sum[1], sum[2], sum[3]), _mm_set1_ps(scale)));
  }
  for (; j < count; ++j, k += stride) {
    __m256 sum = _mm256_setzero_ps();
    for (int64_t c = 0; c < d; c += 8) {
      const int part = d - c < 8 ? static_cast<int>(d - c) : 8;
      sum = _mm256_fmadd_ps(load_part8(q + c, part), load_part8(k + c, part), sum);
    }
    out[j] = add_lanes8(sum) * scale;
  }
}

void attention_values_avx2(const AttentionValuesStep& s) {
  using Values = void (*)(const AttentionValuesStep&);
  static constexpr Values kRows[] = {all_columns<1, 8>, all_columns<2, 4>, all_columns<3, 4>,
                                     all_columns<4, 2>, all_columns<5, 2>, all_columns<6, 2>};
  kRows[s.count - 1](s);
}

}  // namespace halftone::kernels
