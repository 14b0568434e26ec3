#include "kernels/int4_dynamic_linear/int4_dynamic_linear.h"

#include <algorithm>

#include "base/errors.h"
#include "kernels/common/bfloat16_rows.h"
#include "kernels/common/kernel_table.h"
#include "kernels/common/row_blocks.h"
#include "kernels/common/tiling.h"
#include "kernels/common/workspace.h"
#include "kernels/fp32_linear/padded_rows.h"
#include "kernels/fp32_linear/panels.h"
#include "kernels/int4_dynamic_linear/kernels.h"
#include "kernels/quantize_rows/quantized_output.h"

namespace halftone::kernels {
namespace {

const char* check_group(const Int4DynamicProblem& p) {
  return refuse_int4_group(p.group);
}

constexpr Int4DynamicKernel kTable[] = {
#if defined(HALFTONE_X86)
    {"int4_dynamic_linear_s8s4_6x32_avx512vnni", Isa::kAvx512Vnni, check_group, 32, 6,
     int4_dynamic_prepare_avx2, int4_dynamic_multiply_avx512vnni},
    {"int4_dynamic_linear_s8s4_6x16_avx2", Isa::kAvx2, check_group, 16, 6, int4_dynamic_prepare_avx2,
     int4_dynamic_multiply_avx2},
#endif
    {"int4_dynamic_linear_s8s4_4x16_scalar", Isa::kScalar, check_group, 16, 4, int4_dynamic_prepare_scalar,
     int4_dynamic_multiply_scalar},
};

constexpr int kMaxSums = kInt4DynamicPanels * 6 * 32;  // of any kernel in the table

// The pieces of the workspace, in the order they are taken.
struct Scratch {
  uint8_t* rows;  // packed activations
  float* sums;    // for each thread
  QuantizedOutput output;

  Scratch(const Int4DynamicProblem& p, int threads, OutputType type, Workspace& space)
      : rows(space.take<uint8_t>(p.m * (p.k / kInt4DynamicBlock) * kInt4DynamicRowBytes)),
        sums(space.take<float>(threads * kMaxSums)),
        output(p.m, p.n, type, space) {}
};

// One call's state, so that the steps below are short.
struct Run {
  const Int4DynamicKernel& kernel;
  const Fp32LinearKernel& finisher;
  const Int4DynamicProblem& problem;
  const Fp32LinearArgs& args;
  const Int4DynamicPacked& weights;
  const Scratch& scratch;
  RowBlocks blocks;
  Epilogue epilogue;

  int count(int64_t b) const { return static_cast<int>(blocks.begin(b + 1) - blocks.begin(b)); }
  int64_t depth() const { return problem.k / kInt4DynamicBlock; }
  uint8_t* rows(int64_t b) const { return scratch.rows + blocks.begin(b) * depth() * kInt4DynamicRowBytes; }

  void prepare(int64_t b) const {
    for (int r = 0; r < count(b); ++r) {
      const int64_t at = (blocks.begin(b) + r) * args.x_stride;
      if (args.x_bfloat16 == nullptr) {
        kernel.prepare(args.x + at, problem.k, r, count(b), rows(b));
      } else {
        prepare_bfloat16(args.x_bfloat16 + at, r, count(b), rows(b));
      }
    }
  }

  void prepare_bfloat16(const uint16_t* x, int row, int count, uint8_t* records) const {
    float widened[kWidenedSteps];
    for (int64_t k = 0; k < problem.k; k += kWidenedSteps) {
      const int64_t steps = std::min(kWidenedSteps, problem.k - k);
      widen_bfloat16(x + k, steps, widened);
      kernel.prepare(widened, steps, row, count,
                     records + k / kInt4DynamicBlock * count * kInt4DynamicRowBytes);
    }
  }

  // Block b times panels [panel, panel + panels).
  void compute(int64_t b, int64_t panel, int panels, float* sums) const {
    kernel.multiply({rows(b), count(b), &weights, panel, panels, sums});
    for (int p = 0; p < panels; ++p) {
      const int64_t column = (panel + p) * kernel.tile_n;
      finisher.finish({sums + int64_t{p} * count(b) * kernel.tile_n, blocks.begin(b), column, count(b),
                       static_cast<int>(std::min<int64_t>(kernel.tile_n, problem.n - column)), &epilogue});
    }
  }
};

Int4DynamicProblem whole_groups(Int4DynamicProblem p) {
  p.k = int4_whole_groups(p.k, p.group);
  return p;
}

/// k is a whole number of groups, and so are the rows of x.
void run_whole_groups(const Int4DynamicKernel& kernel, const Int4DynamicProblem& p,
                      const Fp32LinearArgs& args, const Int4DynamicPacked& weights,
                      ParallelFor& parallel_for) {
  Workspace space(args.workspace, args.workspace_bytes);
  const Scratch scratch(p, parallel_for.threads(), args.epilogue.type, space);
  const Fp32LinearKernel& finisher = choose_fp32_linear({p.m, p.n, p.k}, kernel.isa);
  const Run run{kernel,
                finisher,
                p,
                args,
                weights,
                scratch,
                RowBlocks(p.m, kernel.rows),
                scratch.output.redirect(args.epilogue)};

  const int64_t blocks = run.blocks.count();
  if (p.m * p.k <= kSerialPrepare) {
    for (int64_t b = 0; b < blocks; ++b) run.prepare(b);
  } else {
    parallel_for.run(blocks, [&](int64_t b, int) { run.prepare(b); });
  }
  const Tiling tiling(blocks, weights.panel_count, kernel.rows * run.depth() * kInt4DynamicRowBytes,
                      parallel_for.threads());
  parallel_for.run(tiling.tasks(), [&](int64_t task, int thread) {
    float* sums = scratch.sums + thread * kMaxSums;
    const int64_t last = tiling.last_panel(task);
    for (int64_t panel = tiling.first_panel(task); panel < last; panel += kInt4DynamicPanels) {
      const int panels = static_cast<int>(std::min<int64_t>(kInt4DynamicPanels, last - panel));
      for (int64_t b = tiling.first_block(task); b < tiling.last_block(task); ++b)
        run.compute(b, panel, panels, sums);
    }
  });
  scratch.output.finish(args.epilogue, kernel.isa, parallel_for);
}

}  // namespace

std::span<const Int4DynamicKernel> int4_dynamic_kernels() {
  return kTable;
}

const Int4DynamicKernel& choose_int4_dynamic(const Int4DynamicProblem& p, Isa isa) {
  if (p.m < 0 || p.n < 0 || p.k < 0) {
    fail(ErrorCode::kInvalidArgument, "int4_dynamic_linear: negative size {} x {} x {}", p.m, p.n, p.k);
  }
  check_int4_group("int4_dynamic_linear", p.k, p.group);
  return choose_kernel(int4_dynamic_kernels(), p, isa);
}

size_t int4_dynamic_workspace_bytes(const Int4DynamicKernel&, const Int4DynamicProblem& p, int threads,
                                    OutputType type) {
  const Int4DynamicProblem whole = whole_groups(p);
  Workspace count;
  const Scratch scratch(whole, threads, type, count);
  return padded_rows_bytes(p.m, p.k, whole.k) + count.bytes_needed();
}

void int4_dynamic_linear(const Int4DynamicKernel& kernel, const Int4DynamicProblem& p,
                         const Fp32LinearArgs& args, ParallelFor& parallel_for) {
  const Int4DynamicPacked weights = open_int4_dynamic(args.weights, kernel.tile_n);
  if (p.m == 0 || p.n == 0) return;
  check_panel_args("int4_dynamic_linear", {p.m, p.n, p.k}, {p.m, weights.n, weights.inputs}, args);
  if (weights.group != p.group) {
    fail(ErrorCode::kInvalidArgument,
         "int4_dynamic_linear: the weights have groups of {}, the problem says {}", weights.group, p.group);
  }
  const Fp32LinearArgs padded = pad_rows(args, p.m, p.k, weights.k, parallel_for);
  run_whole_groups(kernel, whole_groups(p), padded, weights, parallel_for);
}

}  // namespace halftone::kernels
