#include "kernels/fp32_linear/panels.h"

#include <algorithm>

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
// Ready panels are cut into equal parts, up to this: 384 at once beat 256 and 128.
constexpr int64_t kMostDepth = 384;
constexpr int64_t kMostBlocks = 16;
// Sums that a thread keeps between two depths, in the second-level cache too.
constexpr int64_t kSumsPerThread = 16 * 12 * 32 * 4;
constexpr int64_t kSlab = kDepth * 32;  // expanded weights of one panel and one depth
constexpr int kMostRows = 12;           // of a block of any kernel
constexpr int kFusedPanels = 4;

struct Run {
  const Fp32LinearKernel& kernel;
  const Fp32LinearProblem& problem;
  const Fp32LinearArgs& args;
  const Fp32Panels& source;
  float* rows;  // packed activations
  RowBlocks blocks;
  Epilogue epilogue;  // with kQuantizedRows replaced by floats in scratch

  int count(int64_t b) const { return static_cast<int>(blocks.begin(b + 1) - blocks.begin(b)); }

  bool fused() const {
    return source.multiply_rows != nullptr && blocks.count() == 1 && count(0) <= source.fused_rows;
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
    float widened[kMostRows * kWidenedSteps];
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
  int64_t depth_of(int64_t turns) const {
    if (source.expand != nullptr) return kDepth;
    if (turns == 1) return std::max<int64_t>(problem.k, 1);
    const int64_t slabs = std::max<int64_t>(1, (problem.k + kMostDepth - 1) / kMostDepth);
    return std::max<int64_t>(1, (problem.k + slabs - 1) / slabs);
  }

  // A range of row blocks times a range of panels.
  void compute(int64_t first_block, int64_t last_block, int64_t first_panel, int64_t last_panel, float* sums,
               float* slab) const {
    const int64_t turns = last_block - first_block;
    const int64_t tile = int64_t{kernel.rows} * kernel.tile_n;
    const int64_t chunk = kSumsPerThread / (tile * turns);
    const int64_t depth = depth_of(turns);
    for (; first_panel < last_panel; first_panel += chunk) {
      const int64_t end = std::min(last_panel, first_panel + chunk);
      for (int64_t k = 0; k == 0 || k < problem.k; k += depth) {
        float* at = sums;
        for (int64_t panel = first_panel; panel < end;) {
          const Slab s = open(panel, turns == 1 ? end - panel : 1, k, std::min(depth, problem.k - k), slab);
          for (int64_t b = first_block; b < last_block; ++b, at += tile * s.panels)
            step(b, s, b - first_block, turns, at);
          panel += s.panels;
        }
      }
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

  // One block of rows, the `turn`-th of `turns` that meet this slab. The last slab of k finishes the tiles.
  void step(int64_t b, const Slab& s, int64_t turn, int64_t turns, float* sums) const {
    const unsigned char* next = s.next + s.steps * step_bytes() * turn / turns;
    kernel.multiply({rows + blocks.begin(b) * problem.k + s.k * count(b), count(b), s.w,
                     problem.k * step_bytes(), s.panels, s.steps, s.k > 0, sums, next, step_bytes() / turns});
    if (s.k + s.steps >= problem.k) finish(b, s.panel, s.panels, sums);
  }

  void finish(int64_t b, int64_t panel, int panels, const float* sums) const {
    for (int p = 0; p < panels; ++p) {
      const int64_t column = (panel + p) * kernel.tile_n;
      kernel.finish({sums + int64_t{p} * count(b) * kernel.tile_n, blocks.begin(b), column, count(b),
                     static_cast<int>(std::min<int64_t>(kernel.tile_n, problem.n - column)), &epilogue});
    }
  }

  // Few rows without expanding anything, four panels at once.
  void compute_fused(int64_t first_panel, int64_t last_panel, float* sums) const {
    while (first_panel < last_panel) {
      const int panels = last_panel - first_panel >= kFusedPanels ? kFusedPanels : 1;
      source.multiply_rows(source.packed, rows, count(0), first_panel, panels, sums);
      finish(0, first_panel, panels, sums);
      first_panel += panels;
    }
  }
};

// The pieces of the workspace, in the order they are taken.
struct Scratch {
  float* rows;
  float* sums;  // and a slab, for each thread
  QuantizedOutput output;

  Scratch(const Fp32LinearProblem& p, int threads, OutputType type, Workspace& space)
      : rows(space.take<float>(p.m * (p.k + p.k / 32))),
        sums(space.take<float>(threads * (kSumsPerThread + kSlab))),
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

size_t fp32_panels_workspace_bytes(const Fp32LinearProblem& p, int threads, OutputType type) {
  Workspace count;
  const Scratch scratch(p, threads, type, count);
  return count.bytes_needed();
}

void run_fp32_panels(const Fp32LinearKernel& kernel, const Fp32LinearProblem& p, const Fp32LinearArgs& args,
                     const Fp32Panels& source, Splitter& splitter) {
  Workspace space(args.workspace, args.workspace_bytes);
  const Scratch scratch(p, splitter.threads(), args.epilogue.type, space);
  const Run run{kernel,
                p,
                args,
                source,
                scratch.rows,
                RowBlocks(p.m, kernel.rows),
                scratch.output.redirect(args.epilogue)};

  const int64_t blocks = run.blocks.count();
  if (p.m * p.k <= kSerialPrepare) {
    for (int64_t b = 0; b < blocks; ++b) run.prepare(b);
  } else {
    splitter.run(blocks, [&](int64_t b, int) { run.prepare(b); });
  }
  const int64_t block_bytes = kernel.rows * std::min(p.k, kDepth) * int64_t{sizeof(float)};
  const Tiling tiling(blocks, source.panel_count, block_bytes, splitter.threads(), kMostBlocks,
                      run.panels_at_once());
  splitter.run(tiling.tasks(), [&](int64_t task, int thread) {
    float* sums = scratch.sums + thread * (kSumsPerThread + kSlab);
    if (run.fused()) return run.compute_fused(tiling.first_panel(task), tiling.last_panel(task), sums);
    run.compute(tiling.first_block(task), tiling.last_block(task), tiling.first_panel(task),
                tiling.last_panel(task), sums, sums + kSumsPerThread);
  });
  scratch.output.finish(args.epilogue, kernel.isa, splitter);
}

}  // namespace halftone::kernels
