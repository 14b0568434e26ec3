// attention: fused scaled-dot-product attention, all in single precision.
//
//   q [batch][heads][m][d]
//   k [batch][kv_heads][n][d]      head h reads kv head h · kv_heads / heads
//   v [batch][kv_heads][n][dv]
//
//   a[i][j] = scale · Σ_c q[i][c] · k[j][c] + mask[i][j]
//   p[i]    = softmax of a[i]
//   y[i][c] = Σ_j p[i][j] · v[j][c]
//
// mask: float, added; or bytes like PyTorch's boolean mask: 0 adds -inf, any other value adds nothing.
// causal: row i sees only keys j <= i + causal_offset. 0 is aten's is_causal (aligned at the top left, also
// if n > m); n - m aligns the last row with the last key, as a decoder with a cache of n - m earlier keys
// needs.
//
// Up to kAttentionKeys keys a row's scores are kept whole and its softmax is exact; beyond, blocks of keys
// pass with a running maximum and sum (online softmax). Bound, e = 2^-24, D = max over the keys that are not
// masked of (d + 8) · e · (|scale| · Σ_c |q · k| + |mask|), and 8 · D <= 1:
//   |y - exact| <= (4 · D + (n + 32) · e) · Σ_j p[j] · |v[j]| + 1e-37 · max_j |v[j]|.
// A row whose keys are all masked, and n = 0, give zeros, as PyTorch's scaled_dot_product_attention does. A
// NaN in a row's scores (also under a mask: NaN + -inf) or an infinite score gives NaN. A masked key has
// weight 0, and 0 · inf is NaN: values that are not finite reach every row of their head except where causal
// hides them: there they may or may not reach rows above, as NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"

namespace halftone::kernels {

/// Keys that are kept whole; longer sequences pass in blocks of so many.
inline constexpr int64_t kAttentionKeys = 256;
/// Columns of a packed panel, and the tallest block of rows.
inline constexpr int kAttentionPanel = 16;
inline constexpr int kAttentionRows = 6;

struct AttentionProblem {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  ///< divides heads
  int64_t m = 0;         ///< rows of q
  int64_t n = 0;         ///< rows of k and v
  int64_t d = 0;         ///< columns of q and k
  int64_t dv = 0;        ///< columns of v and y
  bool causal = false;
  int64_t causal_offset = 0;
};

/// Elements from one batch, head and row to the next; columns are neighbours.
struct AttentionStrides {
  int64_t batch = 0;
  int64_t head = 0;
  int64_t row = 0;
};

/// Elements; 0 repeats.
struct AttentionMaskStrides {
  int64_t batch = 0;
  int64_t head = 0;
  int64_t row = 0;
  int64_t column = 1;
};

/// Borrowed. Nothing may overlap y.
struct AttentionArgs {
  const float* q = nullptr;
  AttentionStrides q_strides;
  const float* k = nullptr;
  AttentionStrides k_strides;
  const float* v = nullptr;
  AttentionStrides v_strides;
  float scale = 1.0f;
  const float* mask = nullptr;        ///< added, or none
  const uint8_t* keep = nullptr;      ///< 0 masks, or none; not together with mask
  AttentionMaskStrides mask_strides;  ///< of either
  float* y = nullptr;  ///< with strides of its own: [batch][m][heads · dv] is written directly
  AttentionStrides y_strides;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

/// Scores of a block of rows against one panel of 16 keys: out[r][c] = scale · Σ q · k.
struct AttentionScoresStep {
  const float* q;  ///< [d][count]
  int count;
  const float* panel;  ///< [d][16], aligned to 64
  int64_t d;
  float scale;
  float* out;  ///< 16 columns of each row, aligned to 64
  int64_t out_stride;
};

/// A block of rows: scores to unnormalised weights exp(a - max), and what that does to each row's running
/// maximum and sum. Rows together, because one alone is a chain of latencies.
struct AttentionSoftmaxStep {
  float* rows;  ///< [count][stride], aligned to 64
  int64_t stride;
  int count;
  int64_t visible;  ///< scores of the first row; may be <= 0 or > used
  int64_t growth;   ///< how many more each next row has: 0 or 1
  int64_t used;     ///< no row has more; weights beyond a row's scores become 0, up to the next multiple of 8
  const float* mask;
  const uint8_t* keep;
  int64_t mask_row_stride;
  int64_t mask_stride;
  float* largest;  ///< [count], running
  float* sum;      ///< [count], running
  float* before;   ///< [count], out: the factor for everything summed before
};

/// out = (out · before + Σ_key p · v) · after, for a block of rows and some columns.
struct AttentionValuesStep {
  const float* p;  ///< [count][p_stride]
  int64_t p_stride;
  int count;
  const float* v;  ///< [keys][v_stride]
  int64_t v_stride;
  int64_t keys;
  int64_t columns;
  const float* before;  ///< [count]; none: out is not read
  const float* after;   ///< [count]; none: 1
  float* out;
  int64_t out_stride;
};

struct AttentionKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const AttentionProblem&);
  /// `count` <= 6 rows to [d][count].
  void (*pack_queries)(const float* q, int64_t stride, int count, int64_t d, float* packed);
  /// `count` rows to panels [d][16] of 16 keys, zeros beyond.
  void (*pack_keys)(const float* k, int64_t stride, int64_t count, int64_t d, float* packed);
  /// `count` rows to panels [count][16] of 16 columns, zeros beyond.
  void (*pack_values)(const float* v, int64_t stride, int64_t count, int64_t dv, float* packed);
  void (*scores)(const AttentionScoresStep& step);
  /// One row of q with `count` keys where they lie: for few rows, which packing would not pay for.
  void (*scores_row)(const float* q, const float* k, int64_t stride, int64_t count, int64_t d, float scale,
                     float* out);
  void (*softmax)(const AttentionSoftmaxStep& step);
  void (*values)(const AttentionValuesStep& step);
};

/// Best first, scalar last.
std::span<const AttentionKernel> attention_kernels();

/// The best kernel at `isa`. Throws kInvalidArgument for negative sizes and heads that kv_heads does not
/// divide.
const AttentionKernel& choose_attention(const AttentionProblem& problem, Isa isa = active_isa());

/// Scratch memory for one call; any alignment.
size_t attention_workspace_bytes(const AttentionProblem& problem, int threads);

/// Splits over batch, heads and blocks of rows. Allocates nothing. Throws kInvalidArgument when the arguments
/// do not fit.
void attention(const AttentionKernel& kernel, const AttentionProblem& problem, const AttentionArgs& args,
               ParallelFor& parallel_for);

}  // namespace halftone::kernels
