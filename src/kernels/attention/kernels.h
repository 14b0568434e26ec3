// The kernels of attention, one set of files for each instruction set. Contract: attention.h.
#pragma once

#include "kernels/attention/attention.h"

namespace halftone::kernels {

void attention_pack_keys_scalar(const float* k, int64_t stride, int64_t count, int64_t d, float* packed);
void attention_pack_values_scalar(const float* v, int64_t stride, int64_t count, int64_t dv, float* packed);
void attention_scores_scalar(const AttentionScoresStep& step);
void attention_scores_row_scalar(const float* q, const float* k, int64_t stride, int64_t count, int64_t d,
                                 float scale, float* out);
void attention_softmax_scalar(const AttentionSoftmaxStep& step);
void attention_values_scalar(const AttentionValuesStep& step);
/// Adds a row's mask, whose columns need not be neighbours; for every level.
void attention_add_mask(const AttentionSoftmaxStep& step, int row, int64_t scores);

void attention_pack_keys_avx2(const float* k, int64_t stride, int64_t count, int64_t d, float* packed);
void attention_pack_values_avx2(const float* v, int64_t stride, int64_t count, int64_t dv, float* packed);
void attention_scores_avx2(const AttentionScoresStep& step);
void attention_scores_row_avx2(const float* q, const float* k, int64_t stride, int64_t count, int64_t d,
                               float scale, float* out);
void attention_softmax_avx2(const AttentionSoftmaxStep& step);
void attention_values_avx2(const AttentionValuesStep& step);

/// The rest of the AVX-512 entry is AVX2.
void attention_scores_avx512vnni(const AttentionScoresStep& step);
void attention_values_avx512vnni(const AttentionValuesStep& step);
/// The same source through SIMDe, linked only into tests.
void attention_scores_avx512vnni_emulated(const AttentionScoresStep& step);
void attention_values_avx512vnni_emulated(const AttentionValuesStep& step);

}  // namespace halftone::kernels
