// attention in plain C++.
#include <cmath>

#include "kernels/attention/kernels.h"

namespace halftone::kernels {

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

void attention_add_strided_mask(const AttentionSoftmaxStep& s) {
  for (int64_t j = 0; j < s.visible; ++j) {
    s.row[j] += s.mask != nullptr                ? s.mask[j * s.mask_stride]
                : s.keep[j * s.mask_stride] != 0 ? 0.0f
                                                 : -INFINITY;
  }
}

float attention_softmax_scalar(const AttentionSoftmaxStep& s) {
  if (s.mask != nullptr || s.keep != nullptr) attention_add_strided_mask(s);
  const float before = *s.largest;
  float largest = before;
  for (int64_t j = 0; j < s.visible; ++j) largest = s.row[j] > largest ? s.row[j] : largest;
  for (int64_t j = s.visible < 0 ? 0 : s.visible; j < s.width; ++j) s.row[j] = 0.0f;
  if (s.visible <= 0) return 1.0f;
  // All masked so far: any number will do, exp(-inf) is 0. A NaN is never the largest, but its exp is NaN,
  // and the sum.
  const float base = largest == -INFINITY ? 0.0f : largest;
  float sum = 0.0f;
  for (int64_t j = 0; j < s.visible; ++j) {
    s.row[j] = std::exp(s.row[j] - base);
    sum += s.row[j];
  }
  const float factor = before == -INFINITY ? 0.0f : std::exp(before - base);
  *s.largest = largest;
  *s.sum = *s.sum * factor + sum;
  return factor;
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
