// fp32_linear for AVX2: blocks of up to 6 rows times 16 columns, twelve sums in registers, two fused
// multiply-adds a cycle. Compiled for AVX2: no inline code from elsewhere.
#include "kernels/common/x86_avx2_epilogue.h"
#include "kernels/fp32_linear/kernels.h"
#include "kernels/fp32_linear/x86_avx2_vectors.h"
#include "kernels/fp32_linear/x86_multiply.h"

namespace halftone::kernels {
namespace {

struct Floats : Avx2Vectors {
  static constexpr int kElementBytes = 4;
  static void load(const unsigned char* at, Vector& w0, Vector& w1) {
    w0 = _mm256_load_ps(reinterpret_cast<const float*>(at));
    w1 = _mm256_load_ps(reinterpret_cast<const float*>(at) + 8);
  }
};

// Columns [0, k) of 4, 2 or 1 rows into every `count`-th place.
void interleave4(const float* x, int64_t stride, int count, int64_t k, float* out) {
  int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    __m128 a = _mm_loadu_ps(x + i), b = _mm_loadu_ps(x + stride + i);
    __m128 c = _mm_loadu_ps(x + 2 * stride + i), d = _mm_loadu_ps(x + 3 * stride + i);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(out + i * count, a);
    _mm_storeu_ps(out + (i + 1) * count, b);
    _mm_storeu_ps(out + (i + 2) * count, c);
    _mm_storeu_ps(out + (i + 3) * count, d);
  }
  for (; i < k; ++i) {
    for (int r = 0; r < 4; ++r) out[i * count + r] = x[r * stride + i];
  }
}

void interleave2(const float* x, int64_t stride, int count, int64_t k, float* out) {
  int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    const __m128 a = _mm_loadu_ps(x + i), b = _mm_loadu_ps(x + stride + i);
    const __m128 lo = _mm_unpacklo_ps(a, b), hi = _mm_unpackhi_ps(a, b);
    _mm_storel_pi(reinterpret_cast<__m64*>(out + i * count), lo);
    _mm_storeh_pi(reinterpret_cast<__m64*>(out + (i + 1) * count), lo);
    _mm_storel_pi(reinterpret_cast<__m64*>(out + (i + 2) * count), hi);
    _mm_storeh_pi(reinterpret_cast<__m64*>(out + (i + 3) * count), hi);
  }
  for (; i < k; ++i) {
    out[i * count] = x[i];
    out[i * count + 1] = x[stride + i];
  }
}

inline void finish(const Fp32LinearTile& t, int width) {
  const auto sums = [&](int r, int c) { return _mm256_load_ps(t.sums + r * width + c); };
  finish_block(sums, *t.epilogue, t.row, t.column, t.rows, t.columns);
}

}  // namespace

void fp32_pack_rows_avx2(const float* x, int64_t stride, int count, int64_t k, float* packed) {
  int r = 0;
  for (; r + 4 <= count; r += 4) interleave4(x + r * stride, stride, count, k, packed + r);
  if (r + 2 <= count) {
    interleave2(x + r * stride, stride, count, k, packed + r);
    r += 2;
  }
  if (r < count) {
    for (int64_t i = 0; i < k; ++i) packed[i * count + r] = x[r * stride + i];
  }
}

void fp32_multiply_avx2(const Fp32LinearStep& s) {
  multiply_up_to_6<Floats>(s);
}

void fp32_finish_16_avx2(const Fp32LinearTile& tile) {
  finish(tile, 16);
}

void fp32_finish_32_avx2(const Fp32LinearTile& tile) {
  finish(tile, 32);
}

}  // namespace halftone::kernels
