#include "kernels/fp32_linear/fp32_linear.h"

#include <algorithm>

#include "base/errors.h"
#include "kernels/common/kernel_table.h"
#include "kernels/common/row_blocks.h"
#include "kernels/common/tiling.h"
#include "kernels/common/workspace.h"
#include "kernels/fp32_linear/kernels.h"
#include "kernels/quantize_rows/quantize_rows.h"

namespace halftone::kernels {
namespace {

const char* take_all(const Fp32LinearProblem&) {
  return nullptr;
}

constexpr Fp32LinearKernel kTable[] = {
#if defined(HALFTONE_X86)
    {"fp32_linear_12x32_avx512vnni", Isa::kAvx512Vnni, take_all, 32, 12, fp32_pack_rows_avx2,
     fp32_multiply_avx512vnni, fp32_finish_32_avx2},
    {"fp32_linear_6x16_avx2", Isa::kAvx2, take_all, 16, 6, fp32_pack_rows_avx2, fp32_multiply_avx2,
     fp32_finish_16_avx2},
#endif
    {"fp32_linear_4x16_scalar", Isa::kScalar, take_all, 16, 4, fp32_pack_rows_scalar, fp32_multiply_scalar,
     fp32_finish_scalar},
};

// k steps whose weights (16 KB of a panel of 16) stay in the first-level cache while a task's row blocks
// pass, and whose rows (96 KB of 16 blocks) stay in the second-level cache while its panels pass.
constexpr int64_t kDepth = 256;
constexpr int64_t kMostBlocks = 16;
// Sums that a thread keeps between two depths, in the second-level cache too.
constexpr int64_t kSumsPerThread = 16 * 12 * 32 * 4;

struct Run {
  const Fp32LinearKernel& kernel;
  const Fp32LinearProblem& problem;
  const Fp32LinearArgs& args;
  const Fp32Packed& weights;
  float* rows;  // packed activations
  RowBlocks blocks;
  Epilogue epilogue;  // with kQuantizedRows replaced by floats in scratch

  int count(int64_t b) const { return static_cast<int>(blocks.begin(b + 1) - blocks.begin(b)); }

  void prepare(int64_t b) const {
    const int64_t first = blocks.begin(b);
    kernel.pack_rows(args.x + first * args.x_stride, args.x_stride, count(b), problem.k,
                     rows + first * problem.k);
  }

  // A range of row blocks times a range of panels.
  void compute(int64_t first_block, int64_t last_block, int64_t first_panel, int64_t last_panel,
               float* sums) const {
    const int64_t tile = int64_t{kernel.rows} * kernel.tile_n;
    const int64_t chunk = kSumsPerThread / (tile * (last_block - first_block));
    // One block of rows reads each weight once: cutting its k would only cost.
    const int64_t depth = last_block - first_block == 1 ? std::max<int64_t>(problem.k, 1) : kDepth;
    for (; first_panel < last_panel; first_panel += chunk) {
      const int64_t end = std::min(last_panel, first_panel + chunk);
      for (int64_t k = 0; k == 0 || k < problem.k; k += depth) {
        float* at = sums;
        for (int64_t panel = first_panel; panel < end;) {
          // Several panels at once only where one block reads them all; whole groups only.
          const int wanted = fp32_panels_at_once(count(first_block));
          const int panels = last_block - first_block == 1 && panel + wanted <= end ? wanted : 1;
          for (int64_t b = first_block; b < last_block; ++b, at += tile * panels) {
            step(
                b,
                {panel, panels, k, std::min(depth, problem.k - k), b - first_block, last_block - first_block},
                at);
          }
          panel += panels;
        }
      }
    }
  }

  // What a block of rows meets: panels, steps of k, and which of how many blocks it is.
  struct Slab {
    int64_t panel;
    int panels;
    int64_t k, steps;
    int64_t turn, turns;
  };

  // The last slab of k finishes the tiles. Each block fetches its share of the next panel's slab.
  void step(int64_t b, const Slab& s, float* sums) const {
    const int64_t panel_stride = problem.k * kernel.tile_n;
    const float* w = weights.panels + s.panel * panel_stride + s.k * kernel.tile_n;
    const float* next = w + panel_stride + s.steps * kernel.tile_n * s.turn / s.turns;
    kernel.multiply({rows + blocks.begin(b) * problem.k + s.k * count(b), count(b), w, panel_stride, s.panels,
                     s.steps, s.k > 0, sums, next, kernel.tile_n * int64_t{sizeof(float)} / s.turns});
    if (s.k + s.steps < problem.k) return;
    for (int p = 0; p < s.panels; ++p) {
      const int64_t column = (s.panel + p) * kernel.tile_n;
      kernel.finish({sums + int64_t{p} * count(b) * kernel.tile_n, blocks.begin(b), column, count(b),
                     static_cast<int>(std::min<int64_t>(kernel.tile_n, problem.n - column)), &epilogue});
    }
  }
};

void check(const Fp32LinearProblem& p, const Fp32LinearArgs& args, const Fp32Packed& weights) {
  if (weights.header->n != p.n || weights.header->k != p.k) {
    fail(ErrorCode::kInvalidArgument, "fp32_linear: the weights are {}x{}, the problem says {}x{}",
         weights.header->n, weights.header->k, p.n, p.k);
  }
  if (args.x == nullptr) fail(ErrorCode::kInvalidArgument, "fp32_linear: no input");
  if (args.epilogue.out == nullptr) fail(ErrorCode::kInvalidArgument, "fp32_linear: no output");
}

}  // namespace

std::span<const Fp32LinearKernel> fp32_linear_kernels() {
  return kTable;
}

const Fp32LinearKernel& choose_fp32_linear(const Fp32LinearProblem& p, Isa isa) {
  if (p.m < 0 || p.n < 0 || p.k < 0) {
    fail(ErrorCode::kInvalidArgument, "fp32_linear: negative size {} x {} x {}", p.m, p.n, p.k);
  }
  return choose_kernel(fp32_linear_kernels(), p, isa);
}

size_t fp32_linear_workspace_bytes(const Fp32LinearKernel&, const Fp32LinearProblem& p, int threads,
                                   OutputType type) {
  Workspace count;
  count.take<float>(p.m * p.k);
  count.take<float>(threads * kSumsPerThread);
  count.take<float>(type == OutputType::kQuantizedRows ? p.m * p.n : 0);
  return count.bytes_needed();
}

void fp32_linear(const Fp32LinearKernel& kernel, const Fp32LinearProblem& p, const Fp32LinearArgs& args,
                 Splitter& splitter) {
  const Fp32Packed weights = open_fp32_packed(args.weights, kernel.tile_n);
  if (p.m == 0 || p.n == 0) return;
  check(p, args, weights);
  const bool quantized = args.epilogue.type == OutputType::kQuantizedRows;
  Workspace space(args.workspace, args.workspace_bytes);
  float* rows = space.take<float>(p.m * p.k);
  float* sums = space.take<float>(splitter.threads() * kSumsPerThread);
  float* floats = space.take<float>(quantized ? p.m * p.n : 0);
  Run run{kernel, p, args, weights, rows, RowBlocks(p.m, kernel.rows), args.epilogue};
  if (quantized) {
    run.epilogue.type = OutputType::kFloat32;
    run.epilogue.out = floats;
    run.epilogue.out_stride = p.n;
  }

  const int64_t blocks = run.blocks.count();
  if (p.m * p.k <= kSerialPrepare) {
    for (int64_t b = 0; b < blocks; ++b) run.prepare(b);
  } else {
    splitter.run(blocks, [&](int64_t b, int) { run.prepare(b); });
  }
  const int64_t block_bytes = kernel.rows * std::min(p.k, kDepth) * int64_t{sizeof(float)};
  const Tiling tiling(blocks, weights.panel_count, block_bytes, splitter.threads(), kMostBlocks);
  splitter.run(tiling.tasks(), [&](int64_t task, int thread) {
    run.compute(tiling.first_block(task), tiling.last_block(task), tiling.first_panel(task),
                tiling.last_panel(task), sums + thread * kSumsPerThread);
  });

  if (quantized) {
    const Epilogue& e = args.epilogue;
    quantize_rows(choose_kernel(quantize_rows_kernels(), QuantizeRowsProblem{p.m, p.n}, kernel.isa),
                  {p.m, p.n},
                  {floats, p.n, static_cast<uint8_t*>(e.out), e.out_stride, e.out_scale, e.out_zero_point,
                   e.row_format},
                  splitter);
  }
}

}  // namespace halftone::kernels
