// pooling, 32 channels at a time in four registers, then eight. Compiled for AVX2: no inline code from
// elsewhere.
#include "kernels/common/x86_avx2_math.h"
#include "kernels/pooling/kernels.h"

namespace halftone::kernels {
namespace {

struct LargestOf {
  static __m256 start() { return _mm256_set1_ps(-__builtin_inff()); }
  // max_ps gives its second operand if one is NaN: what is NaN already stays, what comes is put in.
  static __m256 take(__m256 so_far, __m256 x) {
    return _mm256_blendv_ps(_mm256_max_ps(x, so_far), x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  }
  static __m256 finish(__m256 largest, __m256) { return largest; }
};

struct MeanOf {
  static __m256 start() { return _mm256_setzero_ps(); }
  static __m256 take(__m256 so_far, __m256 x) { return _mm256_add_ps(so_far, x); }
  static __m256 finish(__m256 sum, __m256 divide) { return _mm256_div_ps(sum, divide); }
};

template <typename Rule, int kVectors>
void pool_vectors(const PoolPatch& p, int64_t c, __m256 divide) {
  __m256 all[kVectors];
  for (int v = 0; v < kVectors; ++v) all[v] = Rule::start();
  for (int64_t d = 0; d < p.count[0]; ++d) {
    for (int64_t h = 0; h < p.count[1]; ++h) {
      const float* x = p.x + d * p.stride[0] + h * p.stride[1] + c;
      for (int64_t w = 0; w < p.count[2]; ++w, x += p.stride[2]) {
        for (int v = 0; v < kVectors; ++v) all[v] = Rule::take(all[v], _mm256_loadu_ps(x + 8 * v));
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) _mm256_storeu_ps(p.y + c + 8 * v, Rule::finish(all[v], divide));
}

template <typename Rule>
void pool_part(const PoolPatch& p, int64_t c, int n, __m256 divide) {
  __m256 all = Rule::start();
  for (int64_t d = 0; d < p.count[0]; ++d) {
    for (int64_t h = 0; h < p.count[1]; ++h) {
      const float* x = p.x + d * p.stride[0] + h * p.stride[1] + c;
      for (int64_t w = 0; w < p.count[2]; ++w, x += p.stride[2]) all = Rule::take(all, load_part8(x, n));
    }
  }
  store_part8(p.y + c, Rule::finish(all, divide), n);
}

template <typename Rule>
void pool_patch(const PoolPatch& p) {
  const __m256 divide = _mm256_set1_ps(p.divide);
  int64_t c = 0;
  for (; c + 32 <= p.channels; c += 32) pool_vectors<Rule, 4>(p, c, divide);
  for (; c + 8 <= p.channels; c += 8) pool_vectors<Rule, 1>(p, c, divide);
  if (c < p.channels) pool_part<Rule>(p, c, static_cast<int>(p.channels - c), divide);
}

}  // namespace

void pool_max_avx2(const PoolPatch& patch) {
  pool_patch<LargestOf>(patch);
}

void pool_mean_avx2(const PoolPatch& patch) {
  pool_patch<MeanOf>(patch);
}

}  // namespace halftone::kernels
