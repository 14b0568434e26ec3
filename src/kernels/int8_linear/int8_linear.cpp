#include "kernels/int8_linear/int8_linear.h"

#include <algorithm>

#include "base/errors.h"
#include "kernels/common/kernel_table.h"
#include "kernels/common/row_blocks.h"
#include "kernels/common/tiling.h"
#include "kernels/common/workspace.h"
#include "kernels/int8_linear/kernels.h"
#include "kernels/quantize_rows/quantize_rows.h"

namespace halftone::kernels {
namespace {

const char* take_all(const Int8LinearProblem&) {
  return nullptr;
}

[[maybe_unused]] const char* take_7_bits(const Int8LinearProblem& p) {
  return p.weight_bits == 7 ? nullptr : "vpmaddubsw would saturate: needs weights of 7 bits";
}

constexpr Int8LinearKernel kTable[] = {
#if defined(HALFTONE_X86)
    {"int8_linear_u8s8_12x32x4_avx512vnni",
     Isa::kAvx512Vnni,
     take_all,
     {32, 4},
     12,
     4,
     0,
     int8_pack_rows_avx2,
     int8_compute_avx512vnni},
    {"int8_linear_u8s7_6x16x4_avx2",
     Isa::kAvx2,
     take_7_bits,
     {16, 4},
     6,
     4,
     0,
     int8_pack_rows_avx2,
     int8_compute_s7_avx2},
    {"int8_linear_u8s8_4x16x4_avx2",
     Isa::kAvx2,
     take_all,
     {16, 4},
     4,
     8,
     128,
     int8_pack_rows_split_avx2,
     int8_compute_s8_avx2},
#endif
    {"int8_linear_u8s8_4x16x4_scalar",
     Isa::kScalar,
     take_all,
     {16, 4},
     4,
     4,
     0,
     int8_pack_rows_scalar,
     int8_compute_scalar},
};

// The pieces of the workspace, in the order they are taken.
struct Scratch {
  uint8_t* rows;       // packed activations
  float* row_scale;    // [m]
  int32_t* row_add;    // [m]
  int32_t* row_mul;    // [m]
  uint8_t* quantized;  // for each thread, one block of quantized rows
  float* floats;       // [m][n], only for kQuantizedRows

  Scratch(const Int8LinearKernel& kernel, const Int8LinearProblem& p, int threads, OutputType type,
          Workspace& space) {
    rows = space.take<uint8_t>(p.m * ((p.k + 3) / 4) * kernel.bytes_per_row_quad);
    row_scale = space.take<float>(p.m);
    row_add = space.take<int32_t>(p.m);
    row_mul = space.take<int32_t>(p.m);
    quantized = space.take<uint8_t>(threads * kernel.rows * p.k);
    floats = space.take<float>(type == OutputType::kQuantizedRows ? p.m * p.n : 0);
  }
};

// One call's state, so that the steps below are short.
struct Run {
  const Int8LinearKernel& kernel;
  const Int8LinearProblem& problem;
  const Int8LinearArgs& args;
  const Int8Packed& weights;
  const QuantizeRowsKernel& quantize;
  const Scratch& scratch;
  RowBlocks blocks;
  Epilogue epilogue;  // with kQuantizedRows replaced by floats in scratch

  int64_t quads() const { return (problem.k + 3) / 4; }

  // Quantizes (where x is float) and packs block b.
  void prepare(int64_t b, int thread) const {
    const int64_t first = blocks.begin(b), end = blocks.begin(b + 1);
    const bool is_signed = args.x_format == RowFormat::kS8;
    const uint8_t* q = args.q + first * args.q_stride;
    int64_t stride = args.q_stride;
    if (args.x != nullptr) {
      uint8_t* mine = scratch.quantized + thread * kernel.rows * problem.k;
      q = mine;
      stride = problem.k;
      for (int64_t r = first; r < end; ++r) {
        const RowScale s =
            quantize.row(args.x + r * args.x_stride, problem.k, args.x_format, mine + (r - first) * stride);
        set_row(r, s.scale, is_signed ? 128 : s.zero_point);
      }
    } else {
      for (int64_t r = first; r < end; ++r)
        set_row(r, args.q_scale[r], is_signed ? 128 : args.q_zero_point[r]);
    }
    kernel.pack_rows(q, stride, static_cast<int>(end - first), problem.k, is_signed ? 0x80 : 0,
                     scratch.rows + first * quads() * kernel.bytes_per_row_quad, scratch.row_add + first);
  }

  void set_row(int64_t r, float scale, int32_t zero_point) const {
    scratch.row_scale[r] = scale;
    scratch.row_mul[r] = kernel.offset - zero_point;
  }

  // Block b, the `turn`-th of `turns` that meet this panel, times panels [panel, end).
  void compute(int64_t b, int64_t turn, int64_t turns, int64_t panel, int64_t end) const {
    const int64_t first = blocks.begin(b), column = panel * kernel.tile.n;
    Int8LinearBlock block;
    block.rows = scratch.rows + first * quads() * kernel.bytes_per_row_quad;
    block.count = static_cast<int>(blocks.begin(b + 1) - first);
    block.quads = quads();
    block.panel = weights.panels + panel * weights.panel_bytes;
    block.row_add = scratch.row_add + first;
    block.row_mul = scratch.row_mul + first;
    block.row_scale = scratch.row_scale + first;
    block.column_sum = weights.sum + column;
    block.column_scale = weights.scale + column;
    block.row = first;
    block.column = column;
    block.panel_bytes = weights.panel_bytes;
    block.next_quarter = weights.panel_bytes / 4;
    block.next = block.panel + weights.panel_bytes + block.next_quarter * turn / turns;
    block.next_step = kernel.tile.n * kernel.tile.k / turns;
    block.columns = static_cast<int>(std::min(end * kernel.tile.n, problem.n) - column);
    block.epilogue = &epilogue;
    block.sums = args.sums;
    block.sums_stride = problem.n;
    kernel.compute(block);
  }
};

void check(const Int8LinearProblem& p, const Int8LinearArgs& args, const Int8Packed& weights) {
  if (weights.header->n != p.n || weights.header->k != p.k ||
      weights.header->weight_bits != static_cast<uint32_t>(p.weight_bits)) {
    fail(ErrorCode::kInvalidArgument,
         "int8_linear: the weights are {}x{} with {} bits, the problem says {}x{} with {}", weights.header->n,
         weights.header->k, weights.header->weight_bits, p.n, p.k, p.weight_bits);
  }
  if ((args.x == nullptr) == (args.q == nullptr)) {
    fail(ErrorCode::kInvalidArgument, "int8_linear: give either float rows or quantized rows");
  }
  if (args.sums == nullptr && args.epilogue.out == nullptr) {
    fail(ErrorCode::kInvalidArgument, "int8_linear: no output");
  }
}

}  // namespace

std::span<const Int8LinearKernel> int8_linear_kernels() {
  return kTable;
}

const Int8LinearKernel& choose_int8_linear(const Int8LinearProblem& p, Isa isa) {
  if (p.m < 0 || p.n < 0 || p.k < 0 || p.k > kInt8LinearMaxK) {
    fail(ErrorCode::kInvalidArgument, "int8_linear: cannot take {} x {} x {} (k is at most {})", p.m, p.n,
         p.k, kInt8LinearMaxK);
  }
  if (p.weight_bits != 8 && p.weight_bits != 7) {
    fail(ErrorCode::kInvalidArgument, "int8_linear: weight_bits is {}; it takes 8 or 7", p.weight_bits);
  }
  return choose_kernel(int8_linear_kernels(), p, isa);
}

size_t int8_linear_workspace_bytes(const Int8LinearKernel& kernel, const Int8LinearProblem& problem,
                                   int threads, OutputType type) {
  Workspace count;
  const Scratch scratch(kernel, problem, threads, type, count);
  return count.bytes_needed();
}

void int8_linear(const Int8LinearKernel& kernel, const Int8LinearProblem& p, const Int8LinearArgs& args,
                 Splitter& splitter) {
  const Int8Packed weights = open_int8_packed(args.weights, kernel.tile);
  if (p.m == 0 || p.n == 0) return;
  check(p, args, weights);
  const OutputType type = args.sums != nullptr ? OutputType::kFloat32 : args.epilogue.type;
  Workspace space(args.workspace, args.workspace_bytes);
  const Scratch scratch(kernel, p, splitter.threads(), type, space);
  const QuantizeRowsKernel& quantize =
      choose_kernel(quantize_rows_kernels(), QuantizeRowsProblem{p.m, p.k}, kernel.isa);
  Run run{kernel, p, args, weights, quantize, scratch, RowBlocks(p.m, kernel.rows), args.epilogue};
  if (type == OutputType::kQuantizedRows) {
    run.epilogue.type = OutputType::kFloat32;
    run.epilogue.out = scratch.floats;
    run.epilogue.out_stride = p.n;
  }

  const int64_t blocks = run.blocks.count();
  if (p.m * p.k <= kSerialPrepare) {
    for (int64_t b = 0; b < blocks; ++b) run.prepare(b, 0);
  } else {
    splitter.run(blocks, [&](int64_t b, int thread) { run.prepare(b, thread); });
  }

  const Tiling tiling(blocks, weights.panel_count, kernel.rows * run.quads() * kernel.bytes_per_row_quad,
                      splitter.threads());
  const int64_t at_once = int8_panels_at_once(static_cast<int>(run.blocks.begin(1)));
  splitter.run(tiling.tasks(), [&](int64_t task, int) {
    const int64_t last = tiling.last_panel(task);
    for (int64_t panel = tiling.first_panel(task); panel < last; panel += at_once) {
      const int64_t first_block = tiling.first_block(task), turns = tiling.last_block(task) - first_block;
      for (int64_t turn = 0; turn < turns; ++turn) {
        run.compute(first_block + turn, turn, turns, panel, std::min(last, panel + at_once));
      }
    }
  });

  if (type == OutputType::kQuantizedRows) {
    const Epilogue& e = args.epilogue;
    quantize_rows(quantize, {p.m, p.n},
                  {scratch.floats, p.n, static_cast<uint8_t*>(e.out), e.out_stride, e.out_scale,
                   e.out_zero_point, e.row_format},
                  splitter);
  }
}

}  // namespace halftone::kernels
