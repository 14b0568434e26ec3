// int8_linear: the table, the workspace, and how a call is cut into tasks.
//
// Many rows: a task takes a group of row blocks from x to the finished output (whole_rows), so no thread
// waits for another between the steps. Few rows: the panels are cut as well (by_panels), and quantizing,
// multiplying and quantizing the output are steps one after the other. Sums are exact integers, so both
// give the same bits for every number of threads.
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

int64_t quads_of(const Int8LinearProblem& p) {
  return (p.k + 3) / 4;
}

RowGroups groups_of(const Int8LinearKernel& kernel, const Int8LinearProblem& p, int threads) {
  const int64_t block_bytes = kernel.rows * quads_of(p) * kernel.bytes_per_row_quad;
  return {RowBlocks(p.m, kernel.rows).count(), RowGroups::most(kernel.rows, block_bytes), threads};
}

// The pieces of the workspace, in the order they are taken.
struct Scratch {
  uint8_t* rows;       // packed activations
  float* row_scale;    // [m]
  int32_t* row_add;    // [m]
  int32_t* row_mul;    // [m]
  uint8_t* quantized;  // for each thread, one block of quantized rows
  // Only for kQuantizedRows: for each thread the rows of a group, or all rows if there are no groups. Rows
  // do not begin a power of two apart, which would give them the same few places in the cache.
  float* floats;
  int64_t floats_stride;
  int64_t floats_per_thread;

  Scratch(const Int8LinearKernel& kernel, const Int8LinearProblem& p, int threads, OutputType type,
          Workspace& space) {
    rows = space.take<uint8_t>(p.m * quads_of(p) * kernel.bytes_per_row_quad);
    row_scale = space.take<float>(p.m);
    row_add = space.take<int32_t>(p.m);
    row_mul = space.take<int32_t>(p.m);
    quantized = space.take<uint8_t>(threads * kernel.rows * p.k);
    const RowGroups groups = groups_of(kernel, p, threads);
    floats_stride = (p.n + 31) / 16 * 16;
    floats_per_thread = groups.largest() * kernel.rows * floats_stride;
    const int64_t all = groups.count() == 0 ? p.m * floats_stride : threads * floats_per_thread;
    floats = space.take<float>(type == OutputType::kQuantizedRows ? all : 0);
  }
};

// Row blocks [first_block, last_block) times panels [first_panel, last_panel).
struct Part {
  int64_t first_block, last_block;
  int64_t first_panel, last_panel;
};

// Panels that a block of rows meets in turn: they stay in the second-level cache until the next block comes.
// A panel gives one line of every output row; lines that follow each other in memory should be written one
// after the other (Zen 3, 4096 x 1536 floats: 7 ms less than panel by panel).
constexpr int64_t kChunkBytes = 100 * 1024;

// One call's state, so that the steps below are short.
struct Run {
  const Int8LinearKernel& kernel;
  const Int8LinearProblem& problem;
  const Int8LinearArgs& args;
  const Int8Packed& weights;
  const QuantizeRowsKernel& quantize;
  const Scratch& scratch;
  OutputType type;
  RowBlocks blocks;

  int64_t quads() const { return quads_of(problem); }

  // Quantizes (where x is float) and packs block b.
  void prepare(int64_t b, int thread) const {
    const int64_t first = blocks.begin(b), end = blocks.begin(b + 1);
    // Kernels multiply u8. pack_rows moves s8 bytes to u8 by an xor with 0x80, which adds 128: so their
    // zero point, which is 0, becomes 128.
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
    // The kernel sums (q - offset) · w, because of offset = 128 in the avx2 kernel for 8-bit weights. What
    // is missing, (offset - zero_point) · Σ w, needs only the column sums that packing made, and is added
    // once for each element.
    scratch.row_mul[r] = kernel.offset - zero_point;
  }

  // Rows of `epilogue` count from `origin`. What is the same for all blocks is worked out once: a short tile
  // takes less than half a microsecond.
  void compute(const Part& part, const Epilogue& epilogue, int64_t origin) const {
    const int64_t turns = part.last_block - part.first_block;
    const int64_t at_once =
        std::max<int64_t>(int8_panels_at_once(blocks.rows(0)), kChunkBytes / (weights.panel_bytes + 1));
    Int8LinearBlock block;
    block.quads = quads();
    block.panel_bytes = weights.panel_bytes;
    block.next_quarter = weights.panel_bytes / 4;
    block.next_step = kernel.tile.n * kernel.tile.k / turns;
    block.epilogue = &epilogue;
    block.sums = args.sums;
    block.sums_stride = problem.n;
    // While its own panels are multiplied, each block of rows fetches a part of the panels after them, in
    // four streams a quarter apart, so that together the blocks fetch each line once.
    const int64_t share = block.next_quarter / turns;  // of the next panel, that a block fetches
    for (int64_t panel = part.first_panel; panel < part.last_panel; panel += at_once) {
      const int64_t end = std::min(part.last_panel, panel + at_once);
      block.column = panel * kernel.tile.n;
      block.columns = static_cast<int>(std::min(end * kernel.tile.n, problem.n) - block.column);
      block.panel = weights.panels + panel * weights.panel_bytes;
      block.next = block.panel + at_once * weights.panel_bytes;
      block.column_sum = weights.sum + block.column;
      block.column_scale = weights.scale + block.column;
      for (int64_t b = part.first_block; b < part.last_block; ++b, block.next += share) {
        const int64_t first = blocks.begin(b);
        block.rows = scratch.rows + first * quads() * kernel.bytes_per_row_quad;
        block.count = blocks.rows(b);
        block.row_add = scratch.row_add + first;
        block.row_mul = scratch.row_mul + first;
        block.row_scale = scratch.row_scale + first;
        block.row = first - origin;
        kernel.compute(block);
      }
    }
  }

  // kQuantizedRows, but as floats at `floats`, the first row of which is `origin`.
  Epilogue as_floats(float* floats, int64_t origin) const {
    Epilogue e = args.epilogue;
    e.type = OutputType::kFloat32;
    e.out = floats;
    e.out_stride = scratch.floats_stride;
    if (e.residual != nullptr) e.residual += origin * e.residual_stride;
    return e;
  }

  void quantize_output(int64_t row, const float* floats) const {
    const Epilogue& e = args.epilogue;
    const RowScale s =
        quantize.row(floats, problem.n, e.row_format, static_cast<uint8_t*>(e.out) + row * e.out_stride);
    e.out_scale[row] = s.scale;
    e.out_zero_point[row] = s.zero_point;
  }

  // A group of row blocks, from x to the output.
  void whole_rows(int64_t first_block, int64_t last_block, int thread) const {
    for (int64_t b = first_block; b < last_block; ++b) prepare(b, thread);
    const Part part{first_block, last_block, 0, weights.panel_count};
    if (type != OutputType::kQuantizedRows) return compute(part, args.epilogue, 0);
    const int64_t origin = blocks.begin(first_block), end = blocks.begin(last_block);
    float* floats = scratch.floats + thread * scratch.floats_per_thread;
    compute(part, as_floats(floats, origin), origin);
    for (int64_t r = origin; r < end; ++r) quantize_output(r, floats + (r - origin) * scratch.floats_stride);
  }

  // Few rows: step by step, cut by panels too.
  void by_panels(ParallelFor& parallel_for) const {
    if (problem.m * problem.k <= kSerialPrepare) {
      for (int64_t b = 0; b < blocks.count(); ++b) prepare(b, 0);
    } else {
      parallel_for.run(blocks.count(), [&](int64_t b, int thread) { prepare(b, thread); });
    }
    const bool quantized = type == OutputType::kQuantizedRows;
    const Epilogue epilogue = quantized ? as_floats(scratch.floats, 0) : args.epilogue;
    const Tiling tiling(blocks.count(), weights.panel_count,
                        kernel.rows * quads() * kernel.bytes_per_row_quad, parallel_for.threads());
    parallel_for.run(tiling.tasks(), [&](int64_t t, int) {
      compute({tiling.first_block(t), tiling.last_block(t), tiling.first_panel(t), tiling.last_panel(t)},
              epilogue, 0);
    });
    if (!quantized) return;
    parallel_for.run(problem.m,
                     [&](int64_t r, int) { quantize_output(r, scratch.floats + r * scratch.floats_stride); });
  }
};

void check(const Int8LinearProblem& p, const Int8LinearArgs& args, const Int8Packed& weights) {
  if (weights.header->n != p.n || weights.header->k != p.k ||
      weights.header->format != static_cast<uint32_t>(p.weight_bits)) {
    fail(ErrorCode::kInvalidArgument,
         "int8_linear: the weights are {}x{} with {} bits, the problem says {}x{} with {}", weights.header->n,
         weights.header->k, weights.header->format, p.n, p.k, p.weight_bits);
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
  // A call inside another parallel region has fewer threads, and larger groups.
  size_t bytes = 0;
  for (int t = 1; t <= threads; ++t) {
    Workspace count;
    const Scratch scratch(kernel, problem, t, type, count);
    bytes = std::max(bytes, count.bytes_needed());
  }
  return bytes;
}

void int8_linear(const Int8LinearKernel& kernel, const Int8LinearProblem& p, const Int8LinearArgs& args,
                 ParallelFor& parallel_for) {
  const Int8Packed weights = open_int8_packed(args.weights, kernel.tile);
  if (p.m == 0 || p.n == 0) return;
  check(p, args, weights);
  const OutputType type = args.sums != nullptr ? OutputType::kFloat32 : args.epilogue.type;
  Workspace space(args.workspace, args.workspace_bytes);
  const Scratch scratch(kernel, p, parallel_for.threads(), type, space);
  const QuantizeRowsKernel& quantize =
      choose_kernel(quantize_rows_kernels(), QuantizeRowsProblem{p.m, p.k}, kernel.isa);
  const Run run{kernel, p, args, weights, quantize, scratch, type, RowBlocks(p.m, kernel.rows)};
  const RowGroups groups = groups_of(kernel, p, parallel_for.threads());
  if (groups.count() == 0) return run.by_panels(parallel_for);
  parallel_for.run(groups.count(), [&](int64_t g, int thread) {
    run.whole_rows(groups.first(g), groups.first(g + 1), thread);
  });
}

}  // namespace halftone::kernels
