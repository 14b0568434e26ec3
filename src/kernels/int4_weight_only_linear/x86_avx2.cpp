// int4_weight_only_linear for AVX2. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/common/x86_avx2_math.h"
#include "kernels/int4_weight_only_linear/kernels.h"

namespace halftone::kernels {
namespace {

// 16^-j for the j-th weight of a lane; the last is shifted down, because its mask would be the sign.
alignas(32) constexpr float kFactor[8] = {1.0f,     0x1p-4f,  0x1p-8f,  0x1p-12f,
                                          0x1p-16f, 0x1p-20f, 0x1p-24f, 1.0f};

// The J-th weight of eight columns, times 16^J (times 1 for the last).
template <int J>
inline __m256 weight(__m256i lanes) {
  if constexpr (J == 7) {
    return _mm256_cvtepi32_ps(_mm256_srli_epi32(lanes, 28));
  } else {
    return _mm256_cvtepi32_ps(_mm256_and_si256(lanes, _mm256_set1_epi32(15 << (4 * J))));
  }
}

inline __m256i load_lanes(const uint32_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

// Eight steps of k for eight columns; x holds eight vectors, each one x / 16^j in every lane.
inline __m256 multiply8(__m256i lanes, const float* x, __m256 sum) {
  sum = _mm256_fmadd_ps(weight<0>(lanes), _mm256_load_ps(x), sum);
  sum = _mm256_fmadd_ps(weight<1>(lanes), _mm256_load_ps(x + 8), sum);
  sum = _mm256_fmadd_ps(weight<2>(lanes), _mm256_load_ps(x + 16), sum);
  sum = _mm256_fmadd_ps(weight<3>(lanes), _mm256_load_ps(x + 24), sum);
  sum = _mm256_fmadd_ps(weight<4>(lanes), _mm256_load_ps(x + 32), sum);
  sum = _mm256_fmadd_ps(weight<5>(lanes), _mm256_load_ps(x + 40), sum);
  sum = _mm256_fmadd_ps(weight<6>(lanes), _mm256_load_ps(x + 48), sum);
  return _mm256_fmadd_ps(weight<7>(lanes), _mm256_load_ps(x + 56), sum);
}

struct Span {
  const uint32_t* lanes;  // of the first of P panels
  int64_t apart;          // lanes from one panel to the next
  const float* scale;
  const float* zero_point;  // or nullptr
  int64_t table_apart;      // floats from one panel's tables to the next
};

// One row times 16 columns of each of P panels. The weights of a group are summed unscaled; the group's scale
// is applied to that sum, and its zero point to the sum of x. Four panels are four streams from memory. The
// totals live in `sums`: a group is long.
template <int P>
void multiply_row(const Int4WeightOnlyPacked& w, const float* x, Span s, float* sums) {
  for (int p = 0; p < P; ++p) {
    _mm256_storeu_ps(sums + p * w.tile_n, _mm256_setzero_ps());
    _mm256_storeu_ps(sums + p * w.tile_n + 8, _mm256_setzero_ps());
  }
  for (int64_t k = 0; k < w.k; k += w.group) {
    __m256 sum[P][2], sum_x = _mm256_setzero_ps();
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) sum[p][0] = sum[p][1] = _mm256_setzero_ps();
    for (int i = 0; i < w.group; i += 8, s.lanes += w.tile_n) {
      alignas(32) float scaled[64];
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        const __m256 v = _mm256_broadcast_ss(x + k + i + j);
        sum_x = _mm256_add_ps(sum_x, v);
        _mm256_store_ps(scaled + j * 8, _mm256_mul_ps(v, _mm256_set1_ps(kFactor[j])));
      }
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        sum[p][0] = multiply8(load_lanes(s.lanes + p * s.apart), scaled, sum[p][0]);
        sum[p][1] = multiply8(load_lanes(s.lanes + p * s.apart + 8), scaled, sum[p][1]);
      }
    }
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
#pragma GCC unroll 8
      for (int h = 0; h < 2; ++h) {
        const int64_t at = p * s.table_apart + h * 8;
        const __m256 zero =
            s.zero_point != nullptr ? _mm256_loadu_ps(s.zero_point + at) : _mm256_set1_ps(8.0f);
        const __m256 group = _mm256_fnmadd_ps(zero, sum_x, sum[p][h]);
        float* total = sums + p * w.tile_n + h * 8;
        _mm256_storeu_ps(total,
                         _mm256_fmadd_ps(group, _mm256_loadu_ps(s.scale + at), _mm256_loadu_ps(total)));
      }
    }
    s.scale += w.tile_n;
    if (s.zero_point != nullptr) s.zero_point += w.tile_n;
  }
}

template <int J>
inline void expand_step(__m256i lanes, __m256 zero, __m256 scale, float* out) {
  const __m256 q = _mm256_mul_ps(weight<J>(lanes), _mm256_set1_ps(kFactor[J]));
  _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_sub_ps(q, zero), scale));
}

}  // namespace

void int4_expand_avx2(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out) {
  const auto& p = *static_cast<const Int4WeightOnlyPacked*>(packed);
  const int n = p.tile_n;
  for (int64_t i = 0; i < steps; i += 8) {
    const int64_t table = (panel * (p.k / p.group) + (k + i) / p.group) * n;
    const uint32_t* lanes = p.panels + (panel * (p.k / 8) + (k + i) / 8) * n;
    for (int c = 0; c < n; c += 8) {
      const __m256i eight = load_lanes(lanes + c);
      _mm_prefetch(reinterpret_cast<const char*>(lanes + c) + 2048, _MM_HINT_T0);
      const __m256 scale = _mm256_loadu_ps(p.scale + table + c);
      const __m256 zero =
          p.zero_point != nullptr ? _mm256_loadu_ps(p.zero_point + table + c) : _mm256_set1_ps(8.0f);
      float* at = out + i * n + c;
      expand_step<0>(eight, zero, scale, at);
      expand_step<1>(eight, zero, scale, at + n);
      expand_step<2>(eight, zero, scale, at + 2 * n);
      expand_step<3>(eight, zero, scale, at + 3 * n);
      expand_step<4>(eight, zero, scale, at + 4 * n);
      expand_step<5>(eight, zero, scale, at + 5 * n);
      expand_step<6>(eight, zero, scale, at + 6 * n);
      expand_step<7>(eight, zero, scale, at + 7 * n);
    }
  }
}

void int4_multiply_row_avx2(const void* packed, const float* x, int64_t panel, int panels, float* sums) {
  const auto& p = *static_cast<const Int4WeightOnlyPacked*>(packed);
  const int64_t table = p.k / p.group * p.tile_n, lanes = p.k / 8 * p.tile_n;
  for (int c = 0; c < p.tile_n; c += 16) {
    Span s{p.panels + panel * lanes + c, lanes, p.scale + panel * table + c, p.zero_point, table};
    if (p.zero_point != nullptr) s.zero_point = p.zero_point + panel * table + c;
    if (panels == 4) {
      multiply_row<4>(p, x, s, sums + c);
    } else {
      multiply_row<1>(p, x, s, sums + c);
    }
  }
}

}  // namespace halftone::kernels
