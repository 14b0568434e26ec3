// int4_weight_only_linear for AVX-512: up to 12 rows times packed weights that become floats in registers.
// Compiled for AVX-512 (or emulated, for tests): no inline code from elsewhere.
#include "kernels/common/x86_avx512_include.h"
// After the AVX-512 intrinsics, whichever they are.
#include "kernels/int4_weight_only_linear/kernels.h"

namespace halftone::kernels {
namespace {

constexpr int kPanel = 32;

// Neighbouring panels at one group, and how far it is to the next panel.
struct Group {
  const uint32_t* lanes;  // of the first panel
  const float* scale;
  const float* zero_point;  // or nullptr
  float* sums;              // [panels][R][kPanel]
  int64_t lanes_apart;
  int64_t table_apart;  // of scales and zero points
  int steps;            // of 8 k
};

// The j-th weight of 16 columns times 16^j, as int4_pack_rows_avx2 wants it; the last is shifted down,
// because its mask would be the sign.
inline __m512 weight(__m512i lanes, int j) {
  return to_floats16(j == 7 ? shift_down28(lanes)
                            : _mm512_and_si512(lanes, _mm512_set1_epi32(15 << (4 * j))));
}

// sums += scale · (Σ qw · x - zero · Σ x) for R rows of a group and P panels.
template <int R, int P>
[[gnu::always_inline]] inline void multiply_group(const float* x, const Group& g) {
  constexpr int kVectors = P * 2;
  __m512 sum[kVectors][R];
#pragma GCC unroll 24
  for (int i = 0; i < kVectors * R; ++i) sum[i / R][i % R] = _mm512_setzero_ps();
  const uint32_t* at = g.lanes;
  for (int i = 0; i < g.steps; ++i, at += kPanel, x += 8 * R) {
    __m512i lanes[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const uint32_t* line = at + v / 2 * g.lanes_apart + v % 2 * 16;
      lanes[v] = _mm512_loadu_si512(line);
      _mm_prefetch(reinterpret_cast<const char*>(line) + 1024, _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const __m512 q = weight(lanes[v], j);
#pragma GCC unroll 12
        for (int r = 0; r < R; ++r) sum[v][r] = _mm512_fmadd_ps(q, _mm512_set1_ps(x[j * R + r]), sum[v][r]);
      }
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t table = v / 2 * g.table_apart + v % 2 * 16;
    const __m512 scale = _mm512_loadu_ps(g.scale + table);
    const __m512 zero =
        g.zero_point != nullptr ? _mm512_loadu_ps(g.zero_point + table) : _mm512_set1_ps(8.0f);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const __m512 total = _mm512_fnmadd_ps(zero, _mm512_set1_ps(x[r]), sum[v][r]);
      float* out = g.sums + (v / 2 * R + r) * kPanel + v % 2 * 16;
      _mm512_storeu_ps(out, _mm512_fmadd_ps(total, scale, _mm512_loadu_ps(out)));
    }
  }
}

// Some panels, all of k: group by group, so that the panels are streams side by side.
template <int R, int P>
void multiply_rows(const float* rows, int panels, int64_t groups, Group g) {
  for (int i = 0; i < panels * R * kPanel; i += 16) _mm512_storeu_ps(g.sums + i, _mm512_setzero_ps());
  for (int64_t i = 0; i < groups; ++i, rows += (g.steps * 8 + 1) * R) {
    Group at = g;
    for (int p = 0; p < panels; p += P) {
      if (panels - p >= P) {
        multiply_group<R, P>(rows, at);
      } else {
        multiply_group<R, 1>(rows, at);
      }
      at.lanes += P * g.lanes_apart;
      at.scale += P * g.table_apart;
      if (at.zero_point != nullptr) at.zero_point += P * g.table_apart;
      at.sums += P * R * kPanel;
    }
    g.lanes += int64_t{g.steps} * kPanel;
    g.scale += kPanel;
    if (g.zero_point != nullptr) g.zero_point += kPanel;
  }
}

}  // namespace

void HALFTONE_AVX512_NAME(int4_multiply_rows_avx512vnni)(const void* packed, const float* rows, int count,
                                                         int64_t panel, int panels, float* sums) {
  using Multiply = void (*)(const float*, int, int64_t, Group);
  static constexpr Multiply kMultiply[] = {multiply_rows<1, 4>,  multiply_rows<2, 2>,  multiply_rows<3, 2>,
                                           multiply_rows<4, 1>,  multiply_rows<5, 1>,  multiply_rows<6, 1>,
                                           multiply_rows<7, 1>,  multiply_rows<8, 1>,  multiply_rows<9, 1>,
                                           multiply_rows<10, 1>, multiply_rows<11, 1>, multiply_rows<12, 1>};
  const auto& p = *static_cast<const Int4WeightOnlyPacked*>(packed);
  const int64_t lanes_apart = p.k / 8 * kPanel, table_apart = p.k / p.group * kPanel;
  kMultiply[count - 1](rows, panels, p.k / p.group,
                       {p.panels + panel * lanes_apart, p.scale + panel * table_apart,
                        p.zero_point != nullptr ? p.zero_point + panel * table_apart : nullptr, sums,
                        lanes_apart, table_apart, p.group / 8});
}

}  // namespace halftone::kernels
