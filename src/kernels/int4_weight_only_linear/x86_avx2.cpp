// int4_weight_only_linear for AVX2: halves of bytes to floats. Compiled for AVX2: no inline code from
// elsewhere.
#include "kernels/common/x86_avx2_math.h"
#include "kernels/int4_weight_only_linear/kernels.h"

namespace halftone::kernels {
namespace {

// Sixteen columns of one k, each 16 times its weight.
struct Sixteen {
  __m256 low, high;
};

inline Sixteen unpack(const uint8_t* bytes) {
  const __m128i top = _mm_set1_epi8(static_cast<char>(0xf0));
  const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
  const __m128i low = _mm_and_si128(_mm_slli_epi16(b, 4), top), high = _mm_and_si128(b, top);
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(low)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(high))};
}

struct Span {
  const uint8_t* bytes;  // of the first of P panels
  int64_t apart;         // bytes from one panel to the next
  int stride;            // bytes from one k to the next
  const float* scale;
  const float* zero_point;  // or nullptr
  int64_t table_apart;      // floats from one panel's tables to the next
};

// One row times 16 columns of each of P panels. The weights of a group are summed unscaled; the group's scale
// is applied to that sum, and its zero point to the sum of x. Four panels are four streams from memory.
template <int P>
void multiply_row(const Int4WeightOnlyPacked& w, const float* x, Span s, float* sums) {
  __m256 total[P][2];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) total[p][0] = total[p][1] = _mm256_setzero_ps();
  for (int64_t k = 0; k < w.k; k += w.group) {
    __m256 sum[P][2], sum_x = _mm256_setzero_ps();
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) sum[p][0] = sum[p][1] = _mm256_setzero_ps();
    for (int i = 0; i < w.group; ++i, s.bytes += s.stride) {
      const __m256 v = _mm256_broadcast_ss(x + k + i);
      sum_x = _mm256_add_ps(sum_x, v);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        const Sixteen q = unpack(s.bytes + p * s.apart);
        sum[p][0] = _mm256_fmadd_ps(v, q.low, sum[p][0]);
        sum[p][1] = _mm256_fmadd_ps(v, q.high, sum[p][1]);
      }
    }
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
#pragma GCC unroll 8
      for (int h = 0; h < 2; ++h) {
        const int64_t at = p * s.table_apart + h * 8;
        if (s.zero_point != nullptr)
          sum[p][h] = _mm256_fnmadd_ps(_mm256_loadu_ps(s.zero_point + at), sum_x, sum[p][h]);
        total[p][h] = _mm256_fmadd_ps(sum[p][h], _mm256_loadu_ps(s.scale + at), total[p][h]);
      }
    }
    s.scale += w.tile_n;
    if (s.zero_point != nullptr) s.zero_point += w.tile_n;
  }
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    _mm256_storeu_ps(sums + p * w.tile_n, total[p][0]);
    _mm256_storeu_ps(sums + p * w.tile_n + 8, total[p][1]);
  }
}

}  // namespace

void int4_expand_avx2(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out) {
  const auto& p = *static_cast<const Int4WeightOnlyPacked*>(packed);
  for (int c = 0; c < p.tile_n; c += 16) {
    for (int64_t i = 0; i < steps; i += p.group) {
      const int64_t table = (panel * (p.k / p.group) + (k + i) / p.group) * p.tile_n + c;
      const __m256 s0 = _mm256_loadu_ps(p.scale + table), s1 = _mm256_loadu_ps(p.scale + table + 8);
      __m256 z0 = _mm256_setzero_ps(), z1 = z0;
      if (p.zero_point != nullptr) {
        z0 = _mm256_loadu_ps(p.zero_point + table);
        z1 = _mm256_loadu_ps(p.zero_point + table + 8);
      }
      const uint8_t* bytes = p.panels + (panel * p.k + k + i) * p.tile_n / 2 + c / 2;
      float* at = out + i * p.tile_n + c;
      for (int j = 0; j < p.group; ++j, bytes += p.tile_n / 2, at += p.tile_n) {
        _mm_prefetch(reinterpret_cast<const char*>(bytes) + 2048, _MM_HINT_T0);
        const Sixteen q = unpack(bytes);
        _mm256_storeu_ps(at, _mm256_mul_ps(_mm256_sub_ps(q.low, z0), s0));
        _mm256_storeu_ps(at + 8, _mm256_mul_ps(_mm256_sub_ps(q.high, z1), s1));
      }
    }
  }
}

void int4_multiply_row_avx2(const void* packed, const float* x, int64_t panel, int panels, float* sums) {
  const auto& p = *static_cast<const Int4WeightOnlyPacked*>(packed);
  const int64_t table = p.k / p.group * p.tile_n;
  for (int c = 0; c < p.tile_n; c += 16) {
    Span s{p.panels + panel * p.k * p.tile_n / 2 + c / 2,
           p.k * p.tile_n / 2,
           p.tile_n / 2,
           p.scale + panel * table + c,
           p.zero_point,
           table};
    if (p.zero_point != nullptr) s.zero_point = p.zero_point + panel * table + c;
    if (panels == 4) {
      multiply_row<4>(p, x, s, sums + c);
    } else {
      multiply_row<1>(p, x, s, sums + c);
    }
  }
}

}  // namespace halftone::kernels
