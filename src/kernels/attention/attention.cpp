// attention: the table, and the driver. A unit is one head and up to kMaxBlocks blocks of its rows; it
// packs the head's keys and values once and takes its rows through scores, softmax and values, kChunk
// blocks at a time, so that the scores are never in memory as a whole. Beyond kAttentionKeys keys, blocks
// of keys pass with the online softmax: each block of keys may raise a row's maximum, and then everything
// summed before is multiplied by exp(old - new), the factor `before` of the next values step.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "kernels/attention/kernels.h"
#include "kernels/common/kernel_table.h"
#include "kernels/common/row_blocks.h"
#include "kernels/common/workspace.h"
#include "kernels/fp32_linear/kernels.h"

namespace halftone::kernels {
namespace {

const char* take_all(const AttentionProblem&) {
  return nullptr;
}

constexpr AttentionKernel kTable[] = {
#if defined(HALFTONE_X86)
    {"attention_f32_6x16_avx512vnni", Isa::kAvx512Vnni, take_all, fp32_pack_rows_avx2,
     attention_pack_keys_avx2, attention_pack_values_avx2, attention_scores_avx512vnni,
     attention_scores_row_avx2, attention_softmax_avx2, attention_values_avx512vnni},
    {"attention_f32_6x16_avx2", Isa::kAvx2, take_all, fp32_pack_rows_avx2, attention_pack_keys_avx2,
     attention_pack_values_avx2, attention_scores_avx2, attention_scores_row_avx2, attention_softmax_avx2,
     attention_values_avx2},
#endif
    {"attention_f32_6x16_scalar", Isa::kScalar, take_all, fp32_pack_rows_scalar, attention_pack_keys_scalar,
     attention_pack_values_scalar, attention_scores_scalar, attention_scores_row_scalar,
     attention_softmax_scalar, attention_values_scalar},
};

// Blocks of rows whose scores are made, weighted and used together: each panel of keys or values is read once
// for all.
constexpr int64_t kChunk = 8;
// Blocks of rows that share one packing of keys and values: 252 rows make it cost 2 % of the products.
constexpr int64_t kMaxBlocks = 42;
// Up to so many rows nothing is packed.
constexpr int64_t kFewRows = 3;
// Multiply-adds below which another thread is not worth waking, about 15 us.
constexpr int64_t kWorkPerTask = 500 * 1000;

int64_t round_up(int64_t x, int64_t step) {
  return (x + step - 1) / step * step;
}

// One row a head: the heads that share a kv head are the rows of one, so that they share its keys.
AttentionProblem merge_heads(const AttentionProblem& p) {
  AttentionProblem merged = p;
  if (p.m != 1) return merged;
  merged.heads = p.kv_heads;
  merged.m = p.kv_heads == 0 ? 0 : p.heads / p.kv_heads;
  // One row sees a prefix of the keys: causal is then only a smaller n, and the merged rows need no mask.
  if (p.causal) merged.n = std::clamp<int64_t>(p.causal_offset + 1, 0, p.n);
  merged.causal = false;
  return merged;
}

AttentionArgs merge_heads(const AttentionProblem& p, const AttentionArgs& args) {
  AttentionArgs merged = args;
  if (p.m != 1) return merged;
  const int64_t group = p.heads / p.kv_heads;
  merged.q_strides.row = args.q_strides.head;
  merged.q_strides.head *= group;
  merged.y_strides.row = args.y_strides.head;
  merged.y_strides.head *= group;
  merged.mask_strides.row = args.mask_strides.head;
  merged.mask_strides.head *= group;
  return merged;
}

// How a call is cut: into units (a head and up to 42 blocks of its rows), and runs of units for each task.
struct Plan {
  RowBlocks blocks;
  int64_t blocks_per_unit, units_per_head, units, units_per_task, tasks;
  int64_t keys;      // of a block
  int64_t p_stride;  // of a row of scores: whole panels, and one more, so that rows do not fall on the same
                     // cache sets

  Plan(const AttentionProblem& p, int threads) : blocks(p.m, kAttentionRows) {
    const int64_t heads = p.batch * p.heads;
    const int64_t wanted = threads == 1 ? 1 : (4 * threads + heads - 1) / std::max<int64_t>(heads, 1);
    blocks_per_unit = std::clamp<int64_t>((blocks.count() + wanted - 1) / wanted, 1, kMaxBlocks);
    units_per_head = (blocks.count() + blocks_per_unit - 1) / blocks_per_unit;
    units = heads * units_per_head;
    const int64_t work = blocks_per_unit * kAttentionRows * p.n * (p.d + p.dv) + 1;
    // Several small units make one task: neighbours may share a kv head, whose packed keys then stay valid
    // (see `packed` in attention()).
    const int64_t enough = std::max<int64_t>(1, kWorkPerTask / work);
    units_per_task =
        threads == 1 ? std::max<int64_t>(units, 1) : std::min(enough, std::max<int64_t>(units, 1));
    tasks = (units + units_per_task - 1) / units_per_task;
    keys = std::clamp<int64_t>(round_up(p.n, kAttentionPanel), kAttentionPanel, kAttentionKeys);
    p_stride = keys + kAttentionPanel;
  }
};

// What one thread works in.
struct Scratch {
  float *queries, *packed_keys, *packed_values, *weights;
  float *largest, *sum, *before, *after;  // for each row of a unit

  Scratch(const AttentionProblem& p, const Plan& plan, Workspace& space) {
    const int64_t rows = plan.blocks_per_unit * kAttentionRows;
    const bool few = p.m <= kFewRows;
    queries = space.take<float>(few ? 0 : rows * p.d);
    packed_keys = space.take<float>(few ? 0 : plan.keys * p.d);
    packed_values = space.take<float>(few ? 0 : plan.keys * round_up(p.dv, kAttentionPanel));
    weights = space.take<float>(std::min(plan.blocks_per_unit, kChunk) * kAttentionRows * plan.p_stride);
    largest = space.take<float>(rows);
    sum = space.take<float>(rows);
    before = space.take<float>(rows);
    after = space.take<float>(rows);
  }
};

// One head and some blocks of its rows. Rows are counted from the unit's first.
struct Unit {
  const AttentionKernel& kernel;
  const AttentionProblem& p;
  const AttentionArgs& args;
  const Plan& plan;
  const Scratch& s;
  int64_t batch, head, first_block, last_block;

  int64_t first_row() const { return plan.blocks.begin(first_block); }
  int64_t begin(int64_t block) const { return plan.blocks.begin(block) - first_row(); }
  int count(int64_t block) const {
    return static_cast<int>(plan.blocks.begin(block + 1) - plan.blocks.begin(block));
  }
  // Keys that a row of the unit sees.
  int64_t limit(int64_t row) const {
    return p.causal ? std::clamp<int64_t>(first_row() + row + p.causal_offset + 1, 0, p.n) : p.n;
  }
  int64_t block_limit(int64_t block) const { return limit(begin(block + 1) - 1); }

  const float* q(int64_t row) const { return args.q + at(args.q_strides, head, first_row() + row); }
  const float* k(int64_t key) const { return args.k + at(args.k_strides, kv_head(), key); }
  const float* v(int64_t key) const { return args.v + at(args.v_strides, kv_head(), key); }
  float* y(int64_t row) const { return args.y + at(args.y_strides, head, first_row() + row); }
  int64_t kv_head() const { return head / (p.heads / p.kv_heads); }
  int64_t at(const AttentionStrides& strides, int64_t h, int64_t row) const {
    return batch * strides.batch + h * strides.head + row * strides.row;
  }

  void run(bool packed_already) const {
    const int64_t rows = begin(last_block), keys = block_limit(last_block - 1);
    for (int64_t r = 0; r < rows; ++r) {
      s.largest[r] = -INFINITY;
      s.sum[r] = 0.0f;
    }
    const bool few = p.m <= kFewRows;
    for (int64_t b = first_block; b < last_block && !few; ++b) {
      kernel.pack_queries(q(begin(b)), args.q_strides.row, count(b), p.d, s.queries + begin(b) * p.d);
    }
    // Also without any key: rows that see none get zeros from the first pass.
    for (int64_t key = 0; key == 0 || key < keys; key += plan.keys) {
      if (!few && !packed_already) pack(key, std::min(plan.keys, p.n - key));
      for (int64_t b = first_block; b < last_block; b += kChunk) {
        chunk(b, std::min(last_block, b + kChunk), key, std::min(plan.keys, p.n - key));
      }
    }
  }

  void pack(int64_t key, int64_t width) const {
    kernel.pack_keys(k(key), args.k_strides.row, width, p.d, s.packed_keys);
    kernel.pack_values(v(key), args.v_strides.row, width, p.dv, s.packed_values);
  }

  // Blocks [first, last) of rows with `width` keys from `key` on. Blocks that see none of them are done,
  // except at the first keys, where every row gets its zeros.
  void chunk(int64_t first, int64_t last, int64_t key, int64_t width) const {
    while (first < last && key > 0 && block_limit(first) <= key) ++first;
    if (first == last) return;
    if (p.m <= kFewRows) {
      scores_of_few(first, last, key, width);
    } else {
      for (int64_t j = 0; j < width; j += kAttentionPanel) {
        for (int64_t b = first; b < last; ++b) {
          if (key + j < block_limit(b)) scores(b, j, weights(b, first));
        }
      }
    }
    for (int64_t b = first; b < last; ++b) weigh(b, key, width, weights(b, first));
    for (int64_t c = 0; c < p.dv; c += p.m <= kFewRows ? p.dv : kAttentionPanel) {
      for (int64_t b = first; b < last; ++b) values(b, key, width, c, weights(b, first));
    }
  }

  float* weights(int64_t block, int64_t first) const {
    return s.weights + (begin(block) - begin(first)) * plan.p_stride;
  }

  void scores(int64_t b, int64_t j, float* out) const {
    kernel.scores({s.queries + begin(b) * p.d, count(b), s.packed_keys + j * p.d, p.d, args.scale, out + j,
                   plan.p_stride});
  }

  // Panel by panel, so that the keys of one stay in cache for all rows.
  void scores_of_few(int64_t first, int64_t last, int64_t key, int64_t width) const {
    for (int64_t j = 0; j < width; j += kAttentionPanel) {
      const int64_t some = std::min<int64_t>(kAttentionPanel, width - j);
      for (int64_t r = begin(first); r < begin(last); ++r) {
        kernel.scores_row(q(r), k(key + j), args.k_strides.row, some, p.d, args.scale,
                          s.weights + (r - begin(first)) * plan.p_stride + j);
      }
    }
  }

  // Scores to weights, and the factors of what was summed before and, where a block has seen its last key, of
  // the result.
  void weigh(int64_t b, int64_t key, int64_t width, float* weights) const {
    const AttentionMaskStrides& strides = args.mask_strides;
    const int64_t first = begin(b), row = first_row() + first;
    const int64_t mask_at =
        batch * strides.batch + head * strides.head + row * strides.row + key * strides.column;
    AttentionSoftmaxStep step;
    step.rows = weights;
    step.stride = plan.p_stride;
    step.count = count(b);
    step.used = std::clamp<int64_t>(block_limit(b) - key, 0, width);
    step.visible = p.causal ? row + p.causal_offset + 1 - key : step.used;
    step.growth = p.causal ? 1 : 0;
    step.mask = args.mask != nullptr ? args.mask + mask_at : nullptr;
    step.keep = args.keep != nullptr ? args.keep + mask_at : nullptr;
    step.mask_row_stride = strides.row;
    step.mask_stride = strides.column;
    step.largest = s.largest + first;
    step.sum = s.sum + first;
    step.before = s.before + first;
    kernel.softmax(step);
    const bool done = block_limit(b) <= key + width;
    for (int64_t r = first; r < begin(b + 1); ++r) {
      // A sum of 0 means that every key was masked; NaN stays.
      s.after[r] = !done ? 1.0f : s.sum[r] == 0.0f ? 0.0f : 1.0f / s.sum[r];
    }
  }

  // Columns from c on: one packed panel, or all of them where the values lie.
  void values(int64_t b, int64_t key, int64_t width, int64_t c, const float* weights) const {
    const bool few = p.m <= kFewRows;
    AttentionValuesStep step{};
    step.p = weights;
    step.p_stride = plan.p_stride;
    step.count = count(b);
    step.v = few ? v(key) : s.packed_values + c * width;
    step.v_stride = few ? args.v_strides.row : kAttentionPanel;
    step.keys = std::clamp<int64_t>(block_limit(b) - key, 0, width);
    step.columns = few ? p.dv : std::min<int64_t>(kAttentionPanel, p.dv - c);
    step.before = key == 0 ? nullptr : s.before + begin(b);
    step.after = s.after + begin(b);
    step.out = y(begin(b)) + c;
    step.out_stride = args.y_strides.row;
    kernel.values(step);
  }
};

void check_sizes(const AttentionProblem& p) {
  if (p.batch < 0 || p.heads < 0 || p.kv_heads < 0 || p.m < 0 || p.n < 0 || p.d < 0 || p.dv < 0) {
    fail(ErrorCode::kInvalidArgument,
         "attention: negative size: batch {}, heads {} and {}, rows {} and {}, columns {} and {}", p.batch,
         p.heads, p.kv_heads, p.m, p.n, p.d, p.dv);
  }
  if (p.heads != 0 && (p.kv_heads == 0 || p.heads % p.kv_heads != 0)) {
    fail(ErrorCode::kInvalidArgument, "attention: {} heads cannot share {} heads of keys", p.heads,
         p.kv_heads);
  }
}

void check(const AttentionProblem& p, const AttentionArgs& args) {
  if (args.mask != nullptr && args.keep != nullptr) {
    fail(ErrorCode::kInvalidArgument, "attention: give an added or a boolean mask, not both");
  }
  if (args.y == nullptr) fail(ErrorCode::kInvalidArgument, "attention: no output");
  if (p.n > 0 && (args.v == nullptr || (p.d > 0 && (args.q == nullptr || args.k == nullptr)))) {
    fail(ErrorCode::kInvalidArgument, "attention: no queries, keys or values");
  }
}

}  // namespace

std::span<const AttentionKernel> attention_kernels() {
  return kTable;
}

const AttentionKernel& choose_attention(const AttentionProblem& p, Isa isa) {
  check_sizes(p);
  return choose_kernel(attention_kernels(), p, isa);
}

size_t attention_workspace_bytes(const AttentionProblem& problem, int threads) {
  check_sizes(problem);
  const AttentionProblem p = merge_heads(problem);
  const Plan plan(p, threads);
  Workspace count;
  for (int t = 0; t < threads; ++t) const Scratch scratch(p, plan, count);
  return count.bytes_needed();
}

void attention(const AttentionKernel& kernel, const AttentionProblem& problem, const AttentionArgs& given,
               ParallelFor& parallel_for) {
  check_sizes(problem);
  if (problem.batch == 0 || problem.heads == 0 || problem.m == 0 || problem.dv == 0) return;
  check(problem, given);
  const AttentionProblem p = merge_heads(problem);
  const AttentionArgs args = merge_heads(problem, given);
  const Plan plan(p, parallel_for.threads());
  Workspace count;
  const Scratch sizes(p, plan, count);
  const size_t bytes = count.bytes_needed() - Workspace::kAlignment;
  Workspace whole(args.workspace, args.workspace_bytes);
  char* base = whole.take<char>(static_cast<int64_t>(bytes) * parallel_for.threads());
  parallel_for.run(plan.tasks, [&](int64_t task, int thread) {
    Workspace mine(base + static_cast<size_t>(thread) * bytes, bytes);
    const Scratch scratch(p, plan, mine);
    int64_t packed = -1;  // the kv head whose keys are all packed
    const int64_t end = std::min(plan.units, (task + 1) * plan.units_per_task);
    for (int64_t u = task * plan.units_per_task; u < end; ++u) {
      const int64_t head = u / plan.units_per_head, first = u % plan.units_per_head * plan.blocks_per_unit;
      const Unit unit{kernel,         p,       args,
                      plan,           scratch, head / p.heads,
                      head % p.heads, first,   std::min(plan.blocks.count(), first + plan.blocks_per_unit)};
      const int64_t kv = unit.batch * p.kv_heads + unit.kv_head();
      unit.run(kv == packed);
      // With more than one block of keys the scratch holds only the last one.
      packed = p.n <= plan.keys ? kv : -1;
    }
  });
}

}  // namespace halftone::kernels
