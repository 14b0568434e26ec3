// int8_linear for AVX-512 VNNI: blocks of up to 12 rows times 32 columns, 24 sums in registers; vpdpbusd
// multiplies u8 by s8 and adds four products in 32 bits, so weights of 8 and 7 bits are the same to it.
// Compiled for AVX-512 (or emulated, for tests): no inline code from elsewhere.
#include "kernels/common/x86_avx512_include.h"
// After the AVX-512 intrinsics, whichever they are.
#include "kernels/int8_linear/x86_avx2_finish.h"

namespace halftone::kernels {
namespace {

constexpr int kPanel = 32;
constexpr int kRows = 12;

// The commonest epilogue, for which the sums need not leave the registers.
template <int P>
inline bool is_plain(const Int8LinearBlock& b) {
  const Epilogue& e = *b.epilogue;
  return b.sums == nullptr && b.columns >= P * kPanel && e.type == OutputType::kFloat32 &&
         (e.activation == Activation::kNone || e.activation == Activation::kRelu);
}

// The same operations in the same order as finish_tile's, on 16 columns from `column` on of all rows.
template <int R>
[[gnu::always_inline]] inline void finish_plain(const Int8LinearBlock& b, const __m512i (&sum)[R][2],
                                                int half, int column) {
  const Epilogue& e = *b.epilogue;
  const __m512i column_sum = _mm512_loadu_si512(b.column_sum + column);
  const __m512 column_scale = _mm512_loadu_ps(b.column_scale + column);
  const __m512 bias =
      e.bias != nullptr ? _mm512_loadu_ps(e.bias + b.column + column) : _mm512_set1_ps(-0.0f);  // x + -0 is x
  const __m512 least = _mm512_set1_ps(e.activation == Activation::kRelu ? 0.0f : -__builtin_inff());
  float* out = static_cast<float*>(e.out) + b.row * e.out_stride + b.column + column;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r, out += e.out_stride) {
    const __m512i raw = _mm512_add_epi32(sum[r][half], _mm512_set1_epi32(b.row_add[r]));
    const __m512i a = _mm512_add_epi32(raw, _mm512_mullo_epi32(_mm512_set1_epi32(b.row_mul[r]), column_sum));
    const __m512 scale = _mm512_mul_ps(_mm512_set1_ps(b.row_scale[r]), column_scale);
    __m512 y = larger16(least, _mm512_add_ps(_mm512_mul_ps(to_floats16(a), scale), bias));
    if (e.residual != nullptr) {
      y = _mm512_add_ps(y, _mm512_loadu_ps(e.residual + (b.row + r) * e.residual_stride + b.column + column));
    }
    _mm512_storeu_ps(out, y);
  }
}

// A block alone is bound by memory, which is read fastest without advice. If several blocks pass, the
// panel after this one is fetched meanwhile, through four streams (see Int8LinearBlock::next).
inline void fetch_ahead(const Int8LinearBlock& b, const int8_t* w, int64_t quad) {
  if (b.next_step > 64) return;
  _mm_prefetch(reinterpret_cast<const char*>(w) + 1024, _MM_HINT_T0);
  _mm_prefetch(
      reinterpret_cast<const char*>(b.next) + (quad & 3) * b.next_quarter + (quad >> 2) * b.next_step,
      _MM_HINT_T1);
}

// R rows times P panels. vpdpbusd has a latency of 5 and runs twice a cycle: ten sums hide it.
template <int R, int P>
bool multiply(const Int8LinearBlock& b, int32_t* tile) {
  __m512i sum[P][R][2];
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) sum[p][r][0] = sum[p][r][1] = _mm512_setzero_si512();
  }
  const uint8_t* x = b.rows;
  const int8_t* w = b.panel;
  for (int64_t quad = 0; quad < b.quads; ++quad, x += R * 4, w += kPanel * 4) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      const __m512i w0 = _mm512_loadu_si512(w + p * b.panel_bytes),
                    w1 = _mm512_loadu_si512(w + p * b.panel_bytes + 64);
      if (P == 1) fetch_ahead(b, w, quad);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        int32_t four;
        __builtin_memcpy(&four, x + r * 4, 4);
        const __m512i fours = _mm512_set1_epi32(four);
        sum[p][r][0] = _mm512_dpbusd_epi32(sum[p][r][0], fours, w0);
        sum[p][r][1] = _mm512_dpbusd_epi32(sum[p][r][1], fours, w1);
      }
    }
  }
  if (is_plain<P>(b)) {
#pragma GCC unroll 16
    for (int i = 0; i < P * 2; ++i) finish_plain<R>(b, sum[i / 2], i % 2, i * 16);
    return true;
  }
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      _mm512_storeu_si512(tile + (p * R + r) * kPanel, sum[p][r][0]);
      _mm512_storeu_si512(tile + (p * R + r) * kPanel + 16, sum[p][r][1]);
    }
  }
  return false;
}

}  // namespace

void HALFTONE_AVX512_NAME(int8_compute_avx512vnni)(const Int8LinearBlock& b) {
  static constexpr Multiply kOnePanel[kRows] = {
      multiply<1, 1>, multiply<2, 1>, multiply<3, 1>, multiply<4, 1>,  multiply<5, 1>,  multiply<6, 1>,
      multiply<7, 1>, multiply<8, 1>, multiply<9, 1>, multiply<10, 1>, multiply<11, 1>, multiply<12, 1>};
  static constexpr Multiply kPanels[] = {multiply<1, 4>, multiply<2, 2>, multiply<3, 2>};
  compute(b, kPanel, int8_panels_at_once(b.count), kPanels, kOnePanel);
}

}  // namespace halftone::kernels
