// attention in plain C++.
#include <algorithm>
#include <cmath>

#include "kernels/attention/kernels.h"

namespace halftone::kernels {
namespace {

int64_t scores_of(const AttentionSoftmaxStep& s, int r) {
  return std::clamp<int64_t>(s.visible + r * s.growth, 0, s.used);
}

}  // namespace

void attention_pack_keys_scalar(const float* k, int64_t stride, int64_t count, int64_t d, float* packed) {
  for (int64_t first = 0; first < count; first += kAttentionPanel, packed += d * kAttentionPanel) {
    for (int64_t c = 0; c < d; ++c) {
      for (int64_t j = 0; j < kAttentionPanel; ++j) {
        packed[c * kAttentionPanel + j] = first + j < count ? k[(first + j) * stride + c] : 0.0f;
      }
    }
  }
}

void attention_pack_values_scalar(const float* v, int64_t stride, int64_t count, int64_t dv, float* packed) {
  for (int64_t first = 0; first < dv; first += kAttentionPanel, packed += count * kAttentionPanel) {
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t c = 0; c < kAttentionPanel; ++c) {
        packed[j * kAttentionPanel + c] = first + c < dv ? v[j * stride + first + c] : 0.0f;
      }
    }
  }
}

void attention_scores_scalar(const AttentionScoresStep& s) {
  for (int r = 0; r < s.count; ++r) {
    float sums[kAttentionPanel] = {};
    for (int64_t c = 0; c < s.d; ++c) {
      const float q = s.q[c * s.count + r];
      for (int j = 0; j < kAttentionPanel; ++j) sums[j] += q * s.panel[c * kAttentionPanel + j];
    }
    for (int j = 0; j < kAttentionPanel; ++j) s.out[r * s.out_stride + j] = sums[j] * s.scale;
  }
}

void attention_scores_row_scalar(const float* q, const float* k, int64_t stride, int64_t count, int64_t d,
                                 float scale, float* out) {
  for (int64_t j = 0; j < count; ++j) {
    float sum = 0.0f;
    for (int64_t c = 0; c < d; ++c) sum += q[c] * k[j * stride + c];
    out[j] = sum * scale;
  }
}

void attention_add_mask(const AttentionSoftmaxStep& s, int row, int64_t scores) {
  for (int64_t j = 0; j < scores; ++j) {
    const int64_t at = row * s.mask_row_stride + j * s.mask_stride;
    s.rows[row * s.stride + j] += s.mask != nullptr ? s.mask[at] : s.keep[at] != 0 ? 0.0f : -INFINITY;
  }
}

void attention_softmax_scalar(const AttentionSoftmaxStep& s) {
  for (int r = 0; r < s.count; ++r) {
    float* row = s.rows + r * s.stride;
    const int64_t scores = scores_of(s, r);
    if (s.mask != nullptr || s.keep != nullptr) attention_add_mask(s, r, scores);
    const float before = s.largest[r];
    float largest = before, sum = 0.0f;
    for (int64_t j = 0; j < scores; ++j) largest = row[j] > largest ? row[j] : largest;
    // All masked so far: any number will do, exp(-inf) is 0. A NaN is never the largest, but its exp is NaN,
    // and the sum.
    const float base = largest == -INFINITY ? 0.0f : largest;
    for (int64_t j = 0; j < scores; ++j) sum += row[j] = std::exp(row[j] - base);
    for (int64_t j = scores; j < s.used; ++j) row[j] = 0.0f;
    s.before[r] = before == -INFINITY ? 0.0f : std::exp(before - base);
    s.sum[r] = s.sum[r] * s.before[r] + sum;
    s.largest[r] = largest;
  }
}

void attention_values_scalar(const AttentionValuesStep& s) {
  for (int r = 0; r < s.count; ++r) {
    float* out = s.out + r * s.out_stride;
    for (int64_t c = 0; c < s.columns; ++c) out[c] = s.before != nullptr ? out[c] * s.before[r] : 0.0f;
    for (int64_t j = 0; j < s.keys; ++j) {
      const float p = s.p[r * s.p_stride + j];
      for (int64_t c = 0; c < s.columns; ++c) out[c] += p * s.v[j * s.v_stride + c];
    }
    for (int64_t c = 0; c < s.columns && s.after != nullptr; ++c) out[c] *= s.after[r];
  }
}

}  // namespace halftone::kernels
