#include "kernels/fp32_linear/panels.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/errors.h"
#include "kernels/common/bfloat16_rows.h"
#include "kernels/common/row_blocks.h"
#include "kernels/common/tiling.h"
#include "kernels/common/workspace.h"
#include "kernels/quantize_rows/quantized_output.h"

namespace halftone::kernels {
namespace {

// k steps whose weights (16 KB of a panel of 16) stay in the first-level cache while a task's row blocks
// pass, and whose rows (96 KB of 16 blocks) stay in the second-level cache while its panels pass.
constexpr int64_t kDepth = 256;
// Ready panels are cut into equal parts, up to this. Measured: 384 beat 256 and 128 for 6x16 on Zen 3, whose
// second-level cache has 512 KB; 2048 beat 1024 and 384 (91 to 93 % of the peak, 32 rows 81 to 85) for 12x32
// on Zen 4 with 1 MB.
constexpr int64_t max_depth(int tile_n) {
  return tile_n == 32 ? 2048 : 384;
}
constexpr int64_t kMaxBlocks = 16;
// Sums that a thread keeps between two depths, in the second-level cache too.
constexpr int64_t kSumsPerThread = 16 * 12 * 32 * 4;
constexpr int64_t kSlab = kDepth * 32;  // expanded weights of one panel and one depth
constexpr int64_t kThreadFloats = kSumsPerThread + kSlab;
constexpr int kMaxRows = 12;  // of a block of any kernel
constexpr int kFusedPanels = 4;
// Weights that fit the third-level cache with room for others.
constexpr int64_t kSharedBytes = 8 << 20;

struct Run {
  const Fp32LinearKernel& kernel;
  const Fp32LinearProblem& problem;
  const Fp32LinearArgs& args;
  const Fp32Panels& source;
  float* rows;  // packed activations
  RowBlocks blocks;
  Epilogue epilogue;  // with kQuantizedRows replaced by floats in scratch

  int count(int64_t b) const { return blocks.rows(b); }

  bool fused() const {
    return source.multiply_rows != nullptr && blocks.count() == 1 && count(0) <= source.fused_rows;
  }

  // A task for whole rows reads all weights, so it is worth it where they stay in a cache that threads share.
  // Expanding them costs more than waiting for other threads.
  bool by_rows() const {
    return source.expand == nullptr && !fused() &&
           source.panel_count * problem.k * step_bytes() <= kSharedBytes;
  }

  // Of one k of a panel.
  int64_t step_bytes() const { return int64_t{kernel.tile_n} * source.element_bytes; }

  // Tasks are whole multiples of it: which panels are multiplied together, and with it the order of their
  // sums, must not depend on the number of threads.
  int64_t panels_at_once() const {
    if (fused()) return kFusedPanels;
    return blocks.count() == 1 && source.expand == nullptr ? fp32_panels_at_once(count(0)) : 1;
  }

  // Packs `steps` steps from k on; x points to the block's first row and to k.
  void pack(int64_t b, const float* x, int64_t stride, int64_t k, int64_t steps) const {
    if (fused() && source.pack_rows != nullptr) {
      source.pack_rows(source.packed, x, stride, count(b), k, steps, rows);
    } else {
      kernel.pack_rows(x, stride, count(b), steps, rows + blocks.begin(b) * problem.k + k * count(b));
    }
  }

  void prepare(int64_t b) const {
    const int64_t at = blocks.begin(b) * args.x_stride;
    if (args.x_bfloat16 == nullptr) return pack(b, args.x + at, args.x_stride, 0, problem.k);
    float widened[kMaxRows * kWidenedSteps];
    for (int64_t k = 0; k < problem.k; k += kWidenedSteps) {
      const int64_t steps = std::min(kWidenedSteps, problem.k - k);
      for (int r = 0; r < count(b); ++r) {
        widen_bfloat16(args.x_bfloat16 + at + r * args.x_stride + k, steps, widened + r * kWidenedSteps);
      }
      pack(b, widened, kWidenedSteps, k, steps);
    }
  }

  // Steps of k at once. One block of rows reads each weight once: cutting its k would only cost. Expanded
  // slabs must begin at a whole group.
  int64_t depth() const {
    if (source.expand != nullptr) return kDepth;
    if (blocks.count() == 1) return std::max<int64_t>(problem.k, 1);
    const int64_t most = max_depth(kernel.tile_n),
                  slabs = std::max<int64_t>(1, (problem.k + most - 1) / most);
    return std::max<int64_t>(1, (problem.k + slabs - 1) / slabs);
  }

  // A range of row blocks times a range of panels.
  void compute(int64_t first_block, int64_t last_block, int64_t first_panel, int64_t last_panel,
               float* sums) const {
    float* slab = sums + kSumsPerThread;
    const int64_t turns = last_block - first_block;
    // One block alone may meet several panels at once, whose sums then lie close together.
    const int64_t tile = int64_t{turns == 1 ? count(first_block) : kernel.rows} * kernel.tile_n;
    const int64_t chunk = kSumsPerThread / (tile * turns);
    for (; first_panel < last_panel; first_panel += chunk) {
      const int64_t end = std::min(last_panel, first_panel + chunk);
      for (int64_t k = 0; k == 0 || k < problem.k; k += depth()) {
        float* at = sums;
        for (int64_t panel = first_panel; panel < end;) {
          const Slab s =
              open(panel, blocks.count() == 1 ? end - panel : 1, k, std::min(depth(), problem.k - k), slab);
          multiply(first_block, last_block, s, at);
          at += tile * turns * s.panels;
          panel += s.panels;
        }
      }
      // Only now, and block by block: lines of the output that follow each other in memory should be written
      // one after the other, and a panel has only one of each row.
      for (int64_t b = first_block; b < last_block; ++b)
        finish(b, first_panel, end, sums + tile * (b - first_block), tile * turns);
    }
  }

  // Panels and steps of k, as the kernel multiplies them.
  struct Slab {
    const unsigned char* w;
    const unsigned char* next;  // the same steps of the next panel; only a hint
    int64_t panel;
    int panels;
    int64_t k, steps;
  };

  // Ready panels are taken where they are, several at once if one block reads them all (whole groups only);
  // others are expanded.
  Slab open(int64_t panel, int64_t panels_left, int64_t k, int64_t steps, float* slab) const {
    if (source.expand != nullptr) {
      source.expand(source.packed, panel, k, steps, slab);
      const auto* w = reinterpret_cast<const unsigned char*>(slab);
      return {w, w, panel, 1, k, steps};
    }
    const int wanted = fp32_panels_at_once(count(0));
    const unsigned char* w = source.ready + (panel * problem.k + k) * step_bytes();
    return {w, w + problem.k * step_bytes(), panel, panels_left >= wanted ? wanted : 1, k, steps};
  }

  // A slab times every block, each of which fetches its share of the next slab.
  void multiply(int64_t first_block, int64_t last_block, const Slab& s, float* sums) const {
    const int64_t turns = last_block - first_block;
    const int64_t share = s.steps * step_bytes() / turns;
    Fp32LinearStep step{nullptr, 0,    s.w,    problem.k * step_bytes(), s.panels, s.steps,
                        s.k > 0, sums, s.next, step_bytes() / turns};
    for (int64_t b = first_block; b < last_block; ++b) {
      step.count = blocks.rows(b);
      step.rows = rows + blocks.begin(b) * problem.k + s.k * step.count;
      kernel.multiply(step);
      step.sums += int64_t{kernel.rows} * kernel.tile_n;
      step.next = static_cast<const unsigned char*>(step.next) + share;
    }
  }

  void scale(float* sums, const float* factor, int count) const {
    for (int r = 0; r < count; ++r, sums += kernel.tile_n) {
      for (int c = 0; c < kernel.tile_n; ++c) sums[c] *= factor[c];
    }
  }

  // Block b of panels [first, last), whose sums are `stride` apart.
  void finish(int64_t b, int64_t first, int64_t last, float* sums, int64_t stride) const {
    for (int64_t panel = first; panel < last; ++panel, sums += stride) {
      const int64_t column = panel * kernel.tile_n;
      if (source.factor != nullptr && !fused()) scale(sums, source.factor + column, blocks.rows(b));
      kernel.finish({sums, blocks.begin(b), column, blocks.rows(b),
                     static_cast<int>(std::min<int64_t>(kernel.tile_n, problem.n - column)), &epilogue});
    }
  }

  // Few rows without expanding anything, four panels at once.
  void compute_fused(int64_t first_panel, int64_t last_panel, float* sums) const {
    while (first_panel < last_panel) {
      const int panels = last_panel - first_panel >= kFusedPanels ? kFusedPanels : 1;
      source.multiply_rows(source.packed, rows, count(0), first_panel, panels, sums);
      finish(0, first_panel, first_panel + panels, sums, int64_t{count(0)} * kernel.tile_n);
      first_panel += panels;
    }
  }
};

// Step by step, each cut for all threads; the second by panels too.
void run_by_panels(const Run& run, float* sums, ParallelFor& parallel_for) {
  const Fp32LinearProblem& p = run.problem;
  const int64_t blocks = run.blocks.count();
  if (p.m * p.k <= kSerialPrepare) {
    for (int64_t b = 0; b < blocks; ++b) run.prepare(b);
  } else {
    parallel_for.run(blocks, [&](int64_t b, int) { run.prepare(b); });
  }
  const int64_t block_bytes = run.kernel.rows * std::min(p.k, kDepth) * int64_t{sizeof(float)};
  const Tiling tiling(blocks, run.source.panel_count, block_bytes, parallel_for.threads(), kMaxBlocks,
                      run.panels_at_once());
  parallel_for.run(tiling.tasks(), [&](int64_t task, int thread) {
    float* mine = sums + thread * kThreadFloats;
    if (run.fused()) return run.compute_fused(tiling.first_panel(task), tiling.last_panel(task), mine);
    run.compute(tiling.first_block(task), tiling.last_block(task), tiling.first_panel(task),
                tiling.last_panel(task), mine);
  });
}

// The pieces of the workspace, in the order they are taken.
struct Scratch {
  float* rows;
  float* sums;  // and a slab, for each thread
  QuantizedOutput output;

  Scratch(const Fp32LinearProblem& p, int threads, OutputType type, Workspace& space)
      : rows(space.take<float>(p.m * (p.k + p.k / 32))),
        sums(space.take<float>(threads * kThreadFloats)),
        output(p.m, p.n, type, space) {}
};

}  // namespace

void check_panel_args(const char* operation, const Fp32LinearProblem& p, const Fp32LinearProblem& weights,
                      const Fp32LinearArgs& args) {
  if (weights.n != p.n || weights.k != p.k) {
    fail(ErrorCode::kInvalidArgument, "{}: the weights are {}x{}, the problem says {}x{}", operation,
         weights.n, weights.k, p.n, p.k);
  }
  if ((args.x == nullptr) == (args.x_bfloat16 == nullptr)) {
    fail(ErrorCode::kInvalidArgument, "{}: no input, or two", operation);
  }
  if (args.epilogue.out == nullptr) fail(ErrorCode::kInvalidArgument, "{}: no output", operation);
}

namespace {

// 2^90 as a float and, cut to its upper half, as a bfloat16: larger magnitudes have larger bits, NaN too.
constexpr int32_t kHugeFloat = (127 + 90) << 23;
constexpr int16_t kHugeBfloat16 = kHugeFloat >> 16;

// The sign of the differences tells: two bit operations and a subtraction for 16 bytes, a few percent of the
// smallest products.
template <typename Bits>
bool is_huge(const void* row, int64_t k, Bits limit) {
  using Lanes [[gnu::vector_size(16)]] = Bits;
  constexpr int64_t kLanes = 16 / sizeof(Bits), kStep = 4 * kLanes;
  constexpr Bits kMagnitude = std::numeric_limits<Bits>::max();
  const auto* bytes = static_cast<const char*>(row);
  Lanes any[4] = {};
  int64_t i = 0;
  for (; i + kStep <= k; i += kStep) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      Lanes bits;
      std::memcpy(&bits, bytes + (i + j * kLanes) * static_cast<int64_t>(sizeof(Bits)), sizeof(bits));
      any[j] |= limit - (bits & kMagnitude);
    }
  }
  any[0] |= any[1] | any[2] | any[3];
  Bits all = 0;
  for (int j = 0; j < kLanes; ++j) all = static_cast<Bits>(all | any[0][j]);
  for (; i < k; ++i) {
    Bits bits;
    std::memcpy(&bits, bytes + i * static_cast<int64_t>(sizeof(Bits)), sizeof(bits));
    all = static_cast<Bits>(all | (limit - (bits & kMagnitude)));
  }
  return all < 0;
}

}  // namespace

bool has_huge_activations(const Fp32LinearArgs& args, int64_t m, int64_t k) {
  for (int64_t row = 0; row < m; ++row) {
    const bool huge = args.x != nullptr ? is_huge(args.x + row * args.x_stride, k, kHugeFloat)
                                        : is_huge(args.x_bfloat16 + row * args.x_stride, k, kHugeBfloat16);
    if (huge) return true;
  }
  return false;
}

size_t fp32_panels_workspace_bytes(const Fp32LinearProblem& p, int threads, OutputType type) {
  Workspace count;
  const Scratch scratch(p, threads, type, count);
  return count.bytes_needed();
}

void run_fp32_panels(const Fp32LinearKernel& kernel, const Fp32LinearProblem& p, const Fp32LinearArgs& args,
                     const Fp32Panels& source, ParallelFor& parallel_for) {
  Workspace space(args.workspace, args.workspace_bytes);
  const Scratch scratch(p, parallel_for.threads(), args.epilogue.type, space);
  const Run run{kernel,
                p,
                args,
                source,
                scratch.rows,
                RowBlocks(p.m, kernel.rows),
                scratch.output.redirect(args.epilogue)};

  const RowGroups groups(run.blocks.count(), kMaxBlocks, parallel_for.threads());
  if (groups.count() > 0 && run.by_rows()) {
    parallel_for.run(groups.count(), [&](int64_t g, int thread) {
      const int64_t first = groups.first(g), last = groups.first(g + 1);
      for (int64_t b = first; b < last; ++b) run.prepare(b);
      run.compute(first, last, 0, source.panel_count, scratch.sums + thread * kThreadFloats);
    });
  } else {
    run_by_panels(run, scratch.sums, parallel_for);
  }
  scratch.output.finish(args.epilogue, kernel.isa, parallel_for);
}

}  // namespace halftone::kernels
