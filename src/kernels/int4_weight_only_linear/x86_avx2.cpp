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

// What selects the j-th weight of eight lanes.
struct Masks {
  alignas(32) uint32_t of[7][8];
};
constexpr Masks kMasks = [] {
  Masks masks{};
  for (int i = 0; i < 56; ++i) masks.of[i / 8][i % 8] = 15u << (4 * (i / 8));
  return masks;
}();

// 16 columns of neighbouring panels at one group, and how far it is to the next panel.
struct Group {
  const uint32_t* lanes;  // of the first panel
  const float* scale;
  const float* zero_point;  // or nullptr
  float* sums;              // [panels][R][tile_n]
  int64_t lanes_apart;
  int64_t table_apart;  // of scales and zero points
  int tile_n;
  int steps;  // of 8 k
};

// R rows of a group times P panels, added to sums. The weights are summed unscaled; the group's scale is
// applied to that sum, and its zero point to the sum of x. Neighbouring j go to kSets different sums. `x` is
// what int4_pack_rows_avx2 wrote for the group. Inlined by force: a call for each group of 32 k, with its
// strides and masks made anew, took a quarter of the time of one row.
template <int R, int P, int kSets>
[[gnu::always_inline]] inline void multiply_group(const float* x, const Group& g) {
  constexpr int kVectors = P * 2;
  __m256 sum[kSets][kVectors][R];
#pragma GCC unroll 16
  for (int i = 0; i < kSets * kVectors * R; ++i)
    sum[i / (kVectors * R)][i / R % kVectors][i % R] = _mm256_setzero_ps();
  const uint32_t* at = g.lanes;
  for (int i = 0; i < g.steps; ++i, at += g.tile_n, x += 8 * R) {
    // Masks are loaded where they are used: seven kept in registers would push the sums into memory.
    const uint32_t(*mask)[8] = kMasks.of;
    __asm__("" : "+r"(mask));
    __m256i lanes[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) lanes[v] = load_lanes(at + v / 2 * g.lanes_apart + v % 2 * 8);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const __m256i one =
            j == 7 ? _mm256_srli_epi32(lanes[v], 28) : _mm256_and_si256(lanes[v], load_lanes(mask[j]));
        const __m256 q = _mm256_cvtepi32_ps(one);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          __m256& total = sum[j % kSets][v][r];
          total = _mm256_fmadd_ps(q, _mm256_broadcast_ss(x + j * R + r), total);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t table = v / 2 * g.table_apart + v % 2 * 8;
    const __m256 scale = _mm256_loadu_ps(g.scale + table);
    const __m256 zero =
        g.zero_point != nullptr ? _mm256_loadu_ps(g.zero_point + table) : _mm256_set1_ps(8.0f);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      __m256 total = sum[0][v][r];
      if (kSets == 2) total = _mm256_add_ps(total, sum[kSets - 1][v][r]);
      total = _mm256_fnmadd_ps(zero, _mm256_broadcast_ss(x + r), total);
      float* out = g.sums + (v / 2 * R + r) * g.tile_n + v % 2 * 8;
      _mm256_storeu_ps(out, _mm256_fmadd_ps(total, scale, _mm256_loadu_ps(out)));
    }
  }
}

// 16 columns of some panels, all of k: group by group, so that the panels are streams side by side.
template <int R, int P>
void multiply_rows(const float* rows, int panels, int64_t groups, Group g) {
  for (int i = 0; i < panels * R; ++i) {
    _mm256_storeu_ps(g.sums + i * g.tile_n, _mm256_setzero_ps());
    _mm256_storeu_ps(g.sums + i * g.tile_n + 8, _mm256_setzero_ps());
  }
  // Two sums if there are fewer than 8: a fused multiply-add takes 4 cycles and two start in each. A panel
  // that is left over has as many: the order of additions must not depend on how panels were dealt out.
  constexpr int kSets = R * P * 2 < 8 ? 2 : 1;
  for (int64_t i = 0; i < groups; ++i, rows += (g.steps * 8 + 1) * R) {
    Group at = g;
    for (int p = 0; p < panels; p += P) {
      if (panels - p >= P) {
        multiply_group<R, P, kSets>(rows, at);
      } else {
        multiply_group<R, 1, kSets>(rows, at);
      }
      at.lanes += P * g.lanes_apart;
      at.scale += P * g.table_apart;
      if (at.zero_point != nullptr) at.zero_point += P * g.table_apart;
      at.sums += P * R * g.tile_n;
    }
    g.lanes += int64_t{g.steps} * g.tile_n;
    g.scale += g.tile_n;
    if (g.zero_point != nullptr) g.zero_point += g.tile_n;
  }
}

// One row of a group: [group][count] x / 16^(k % 8), then its sum. Down by 2^24 at most: see the contract.
inline void pack_group(const float* x, int group, int count, float* out) {
  const __m256 factor = _mm256_load_ps(kFactor);
  __m256 sum = _mm256_setzero_ps();
  for (int i = 0; i < group; i += 8, out += 8 * count) {
    const __m256 eight = _mm256_loadu_ps(x + i), scaled = _mm256_mul_ps(eight, factor);
    sum = _mm256_add_ps(sum, eight);
    if (count == 1) {
      _mm256_storeu_ps(out, scaled);
      continue;
    }
    alignas(32) float part[8];
    _mm256_store_ps(part, scaled);
    for (int j = 0; j < 8; ++j) out[j * count] = part[j];
  }
  *out = add_lanes8(sum);
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

void int4_pack_rows_avx2(const void* packed, const float* x, int64_t stride, int count, int64_t k,
                         int64_t steps, float* rows) {
  const int group = static_cast<const Int4WeightOnlyPacked*>(packed)->group;
  float* out = rows + count * (k + k / group);
  for (int64_t first = 0; first < steps; first += group, out += count * (group + 1)) {
    for (int r = 0; r < count; ++r) pack_group(x + r * stride + first, group, count, out + r);
  }
}

void int4_multiply_rows_avx2(const void* packed, const float* rows, int count, int64_t panel, int panels,
                             float* sums) {
  using Multiply = void (*)(const float*, int, int64_t, Group);
  static constexpr Multiply kMultiply[] = {multiply_rows<1, 4>, multiply_rows<2, 2>, multiply_rows<3, 1>,
                                           multiply_rows<4, 1>, multiply_rows<5, 1>, multiply_rows<6, 1>};
  const auto& p = *static_cast<const Int4WeightOnlyPacked*>(packed);
  Group g{};
  g.lanes_apart = p.k / 8 * p.tile_n;
  g.table_apart = p.k / p.group * p.tile_n;
  g.tile_n = p.tile_n;
  g.steps = p.group / 8;
  for (int c = 0; c < p.tile_n; c += 16) {
    g.lanes = p.panels + panel * g.lanes_apart + c;
    g.scale = p.scale + panel * g.table_apart + c;
    g.zero_point = p.zero_point != nullptr ? p.zero_point + panel * g.table_apart + c : nullptr;
    g.sums = sums + c;
    kMultiply[count - 1](rows, panels, p.k / p.group, g);
  }
}

}  // namespace halftone::kernels
