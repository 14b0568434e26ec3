// The driver of int8_conv. A block of output pixels is multiplied through pointers: for each tap, where the
// channels of the input pixel begin that the tap reads (sources.h). Taps outside of the image point at a
// row of zero points, so kernels have no special case for edges, and no input is copied as long as the
// channels of a group are whole quads. Other channel counts are copied into patches, [tap][channel] in one
// row.
//
// A task is one phase of a transposed convolution (one for all others), one group, one chunk of pixels and
// one part of the panels. Chunks are sized so that their input stays in the second-level cache while all
// panels pass; panels are cut only if there are too few chunks for the threads.
#include "kernels/int8_conv/driver.h"

#include <algorithm>
#include <cstring>

namespace halftone::kernels {
namespace {

// A chunk's input and pointers should stay in a 512 KB second-level cache beside a few panels.
constexpr int64_t kChunkInputBytes = 160 * 1024;
constexpr int64_t kChunkPointerBytes = 32 * 1024;
constexpr int64_t kMaxChunkPixels = 240;
constexpr int64_t kPanelGroupBytes = 24 * 1024;
// Enough that threads balance, few enough that handing them out costs nothing.
constexpr int64_t kConvTasksPerThread = 4;

int64_t ceil_to(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Bytes of input that one more output pixel needs.
int64_t input_bytes_per_pixel(const Int8ConvPlan& plan, const ConvShape& s) {
  if (plan.patch_bytes > 0) return plan.patch_bytes;
  return plan.pixel_bytes * std::min(s.taps(), s.transposed ? 1 : s.stride[0] * s.stride[1] * s.stride[2]);
}

// One call's state, so that the steps below are short.
struct Int8ConvRun {
  const Int8ConvKernel& kernel;
  const Int8ConvProblem& problem;
  const Int8ConvArgs& args;
  const Int8ConvPacked& weights;
  const Int8ConvPlan& plan;
  const Int8ConvScratch& scratch;
  bool split;  // rows, in this call

  const ConvShape& shape() const { return problem.shape; }

  // What one thread works with.
  struct Mine {
    const uint8_t** pointers;
    int64_t* pixel;
    int32_t* start;
    int32_t* tap;
    uint8_t* patches;
  };

  Mine of_thread(int thread) const {
    return {scratch.pointers + thread * plan.chunk_rows * plan.taps, scratch.pixel + thread * plan.chunk_rows,
            scratch.start + thread * weights.group_columns, scratch.tap + thread * weights.taps,
            scratch.patches + thread * plan.patches_bytes()};
  }

  // Factors padded to whole panels, and the pixel outside.
  void prepare() const {
    const ConvShape& s = shape();
    const int64_t groups = weights.groups, ocg = s.out_channels / groups;
    for (int64_t g = 0; g < groups; ++g) {
      float *m = scratch.multiplier + g * weights.group_columns,
            *o = scratch.offset + g * weights.group_columns;
      std::copy_n(args.multiplier + g * ocg, ocg, m);
      std::copy_n(args.offset + g * ocg, ocg, o);
      std::fill(m + ocg, m + weights.group_columns, 0.0f);
      std::fill(o + ocg, o + weights.group_columns, 0.0f);
    }
    uint8_t* zero = scratch.zero + kSplitFront;
    const int64_t channels =
        weights.layout == Int8ConvLayout::kDepthwise ? s.in_channels : s.group_in_channels();
    if (split && weights.layout == Int8ConvLayout::kDirect) {
      uint8_t* plain = zero + plan.pixel_bytes;
      std::memset(plain, args.x_zero_point, static_cast<size_t>(channels));
      kernel.split_row(plain, channels, zero);
    } else {
      std::memset(zero, args.x_zero_point, static_cast<size_t>(channels));
    }
  }

  // All pixels of the input, split.
  void split_input(ParallelFor& parallel_for) const {
    const ConvShape& s = shape();
    const int64_t pixels = s.batch * s.in_pixels(), icg = s.group_in_channels();
    const int64_t piece = std::max<int64_t>(1, 32 * 1024 / s.in_channels);
    parallel_for.run((pixels + piece - 1) / piece, [&](int64_t t, int) {
      for (int64_t p = t * piece; p < std::min(pixels, (t + 1) * piece); ++p) {
        for (int64_t g = 0; g < s.groups; ++g)
          kernel.split_row(args.x + p * args.x_stride + g * icg, icg,
                           scratch.split + (p * s.groups + g) * plan.pixel_bytes + kSplitFront);
      }
    });
  }

  Int8ConvInput input(int64_t group) const {
    const uint8_t* zero = scratch.zero + kSplitFront;
    if (split && weights.layout == Int8ConvLayout::kDirect)
      return {scratch.split + group * plan.pixel_bytes + kSplitFront, shape().groups * plan.pixel_bytes,
              zero};
    return {args.x + group * shape().group_in_channels(), args.x_stride, zero};
  }

  // Patches of one block of pixels, and where they are. Split ones are made from plain ones at `plain`.
  void patch_rows(const Int8ConvInput& from, int64_t first, int count, uint8_t* patches, uint8_t* plain,
                  const uint8_t** rows, int64_t* pixel) const {
    const ConvShape& s = shape();
    const int64_t icg = s.group_in_channels(), k = s.taps() * icg;
    const uint8_t* end = args.x + (s.batch * s.in_pixels() - 1) * args.x_stride + s.in_channels;
    copy_patches(s, from, first, count, {split ? plain : patches, plan.patch_bytes, icg, end});
    for (int r = 0; r < count; ++r, patches += plan.patch_bytes, plain += plan.patch_bytes) {
      std::memset((split ? plain : patches) + k, 0, static_cast<size_t>(weights.quads * 4 - k));
      if (split) kernel.split_row(plain, k, patches + kSplitFront);
      rows[r] = split ? patches + kSplitFront : patches;
      pixel[r] = first + r;
    }
  }

  // -zx · Σ qw over the phase's taps, for columns [first, last) of a group.
  void fill_start(int64_t group, const int32_t* tap, int64_t taps, int64_t first, int64_t last,
                  int32_t* start) const {
    const int64_t all = weights.groups * weights.group_columns;
    // Split rows are x - 128.
    // The zero point of x is taken into account here, once for a column: the sums start at -zx · Σ w over
    // the taps that count, and kernels multiply bytes as they are. Pixels outside hold zx, so they add
    // nothing in the end.
    const int32_t zero = (split ? 128 : 0) - args.x_zero_point;
    for (int64_t c = first; c < last; ++c) start[c] = 0;
    for (int64_t t = 0; t < taps; ++t) {
      const int32_t* sum = weights.sum + tap[t] * all + group * weights.group_columns;
      for (int64_t c = first; c < last; ++c) start[c] += zero * sum[c];
    }
  }

  Int8ConvOutput output(int64_t group, int64_t column, const Mine& mine) const {
    const int64_t ocg = shape().out_channels / weights.groups, at = group * weights.group_columns + column;
    const int64_t width = weights.layout == Int8ConvLayout::kDepthwise ? ocg : kernel.tile.n;
    return {mine.start + column,
            scratch.multiplier + at,
            scratch.offset + at,
            mine.pixel,
            group * ocg + column,
            static_cast<int>(std::min<int64_t>(width, ocg - column)),
            static_cast<float>(args.hi - args.out_zero_point),
            &args};
  }

  void task(int64_t index, int thread) const {
    const int64_t part = index % plan.panel_parts, chunk = index / plan.panel_parts % plan.chunks;
    const int64_t outer = index / plan.panel_parts / plan.chunks;
    const int64_t group = outer % weights.groups;
    const Mine mine = of_thread(thread);
    const Int8ConvPhase phase = plan.phases == 1 && weights.layout != Int8ConvLayout::kDirect
                                    ? Int8ConvPhase{}
                                    : int8_conv_phase(shape(), outer / weights.groups);
    const int64_t pixels =
        weights.layout == Int8ConvLayout::kDirect ? phase.pixels(shape().batch) : plan.pixels;
    const RowBlocks blocks(pixels, plan.rows);
    const int64_t first = blocks.count() * chunk / plan.chunks,
                  last = blocks.count() * (chunk + 1) / plan.chunks;
    if (first == last) return;
    const int64_t taps = prepare_rows(group, phase, blocks, first, last, mine);
    const int64_t first_panel = weights.group_panels * part / plan.panel_parts,
                  last_panel = weights.group_panels * (part + 1) / plan.panel_parts;
    fill_start(group, mine.tap, taps, first_panel * kernel.tile.n, last_panel * kernel.tile.n, mine.start);
    // Panels that stay in the first-level cache while all blocks of pixels meet them; an output pixel's lines
    // are then written one after the other.
    const int64_t together = std::max<int64_t>(1, kPanelGroupBytes / weights.panel_bytes);
    for (int64_t panel = first_panel; panel < last_panel; panel += together)
      compute_panels(group, panel, std::min(last_panel, panel + together), taps, blocks, first, last, mine);
  }

  // Pointers of blocks [first, last); returns the taps of the phase.
  int64_t prepare_rows(int64_t group, const Int8ConvPhase& phase, const RowBlocks& blocks, int64_t first,
                       int64_t last, const Mine& mine) const {
    const Int8ConvInput from = input(group);
    const bool direct = weights.layout == Int8ConvLayout::kDirect;
    const int64_t taps = direct ? phase.taps() : 1;
    mine.tap[0] = 0;
    if (direct) list_taps(shape(), phase, mine.tap);
    for (int64_t b = first; b < last; ++b) {
      const int64_t at = (b - first) * plan.rows;
      const uint8_t** rows = mine.pointers + at * plan.taps;
      if (direct) {
        point_at_rows(shape(), phase, from, blocks.begin(b), blocks.rows(b), plan.rows, rows,
                      mine.pixel + at);
      } else {
        patch_rows(from, blocks.begin(b), blocks.rows(b), mine.patches + at * plan.patch_bytes,
                   mine.patches + plan.chunk_rows * plan.patch_bytes, rows, mine.pixel + at);
      }
    }
    return taps;
  }

  void compute_panels(int64_t group, int64_t first_panel, int64_t last_panel, int64_t taps,
                      const RowBlocks& blocks, int64_t first, int64_t last, const Mine& mine) const {
    const int64_t at = group * weights.group_panels, calls = (last - first) * (last_panel - first_panel);
    Int8ConvBlock block;
    block.rows_stride = plan.rows;
    block.tap = mine.tap;
    block.taps = taps;
    block.quads = weights.quads;
    block.split = split;
    // The calls share the fetching of the next panels.
    block.next_lines = ((last_panel - first_panel) * weights.panel_bytes / 64 + calls - 1) / calls;
    block.next = weights.panels + (at + last_panel) * weights.panel_bytes;
    for (int64_t b = first; b < last; ++b) {
      block.rows = mine.pointers + (b - first) * plan.rows * plan.taps;
      block.count = blocks.rows(b);
      for (int64_t panel = first_panel; panel < last_panel; ++panel, block.next += block.next_lines * 64) {
        block.panel = weights.panels + (at + panel) * weights.panel_bytes;
        block.depth = weights.depth[at + panel];
        block.extras = weights.extras[at + panel];
        block.extra_quads = weights.extra_quads + (at + panel) * weights.max_extras;
        block.extra_weights = weights.extra_weights + (at + panel) * weights.max_extras * kernel.tile.n * 4;
        block.out = output(group, panel * kernel.tile.n, mine);
        block.out.pixel = mine.pixel + (b - first) * plan.rows;
        kernel.compute(block);
      }
    }
  }

  void depthwise_task(int64_t chunk, int thread) const {
    const Mine mine = of_thread(thread);
    const int64_t first = plan.pixels * chunk / plan.chunks, last = plan.pixels * (chunk + 1) / plan.chunks;
    const int64_t taps = shape().taps();
    mine.tap[0] = 0;
    fill_start(0, mine.tap, 1, 0, weights.group_columns, mine.start);
    const Int8ConvInput from = input(0);
    for (int64_t p = first; p < last; ++p) {
      const uint8_t** rows = mine.pointers + (p - first) * plan.taps;
      point_at_taps(shape(), from, p, rows);
      // Kernels multiply pairs of taps. The weights of the missing one are zero; its pointer must only be
      // readable.
      if (taps % 2 != 0) rows[taps] = rows[taps - 1];
      mine.pixel[p - first] = p;
    }
    Int8DepthwiseBlock block;
    block.rows = mine.pointers;
    block.count = static_cast<int>(last - first);
    block.pairs = weights.quads;
    block.panels = weights.panels;
    block.panel_bytes = weights.panel_bytes;
    block.out = output(0, 0, mine);
    kernel.depthwise(block);
  }
};

}  // namespace

Int8ConvPlan::Int8ConvPlan(const Int8ConvKernel& kernel, const Int8ConvProblem& problem, int threads)
    : packed(int8_conv_packed_shape(problem, kernel.tile)),
      split(kernel.split_row != nullptr),
      rows(kernel.rows) {
  const ConvShape& s = problem.shape;
  const int64_t icg = s.group_in_channels();
  const bool direct = packed.layout == Int8ConvLayout::kDirect;
  const bool depthwise = packed.layout == Int8ConvLayout::kDepthwise;
  pixel_bytes = depthwise ? s.in_channels : split ? kSplitFront + 2 * icg : icg;
  pixels = s.batch * s.out_pixels();
  if (direct) {
    phases = int8_conv_phases(s);
    pixels = int8_conv_phase(s, 0).pixels(s.batch);  // no other has more
    taps = s.taps();
  } else if (depthwise) {
    taps = packed.quads * 2;
    rows = 1;
  } else {
    patch_bytes = ceil_to(split ? kSplitFront + packed.quads * 8 : packed.quads * 4, 8) + kPatchSlack;
  }
  int64_t most = std::min(kMaxChunkPixels, kChunkInputBytes / (input_bytes_per_pixel(*this, s) + 1));
  most = std::min(most, kChunkPointerBytes / (taps * int64_t{sizeof(void*)}));
  const int64_t blocks = RowBlocks(pixels, rows).count();
  const int64_t blocks_each = std::max<int64_t>(1, most / rows);
  const int64_t wanted = threads == 1 ? 1 : threads * kConvTasksPerThread;
  chunks = std::max<int64_t>(1, (blocks + blocks_each - 1) / blocks_each);
  const int64_t others = phases * packed.groups;
  if (depthwise) {
    chunks = std::max(chunks, std::min(wanted, blocks));
  } else if (chunks * others < wanted) {
    panel_parts = std::min(packed.group_panels, (wanted + chunks * others - 1) / (chunks * others));
  }
  // A multiple of the threads: otherwise some threads would be idle in the last round.
  if (chunks > 1) chunks = std::min(blocks, ceil_to(chunks, threads));
  chunk_rows = ((blocks + chunks - 1) / chunks) * rows;
}

Int8ConvScratch::Int8ConvScratch(const Int8ConvPlan& plan, const Int8ConvProblem& problem, int threads,
                                 Workspace& space) {
  const ConvShape& s = problem.shape;
  const int64_t columns = plan.packed.groups * plan.packed.group_columns;
  multiplier = space.take<float>(columns);
  offset = space.take<float>(columns);
  zero = space.take<uint8_t>(kSplitFront + plan.pixel_bytes + s.in_channels);
  const bool whole = plan.split && plan.packed.layout == Int8ConvLayout::kDirect;
  split = space.take<uint8_t>(whole ? s.batch * s.in_pixels() * s.groups * plan.pixel_bytes : 0);
  pointers = space.take<const uint8_t*>(threads * plan.chunk_rows * plan.taps);
  pixel = space.take<int64_t>(threads * plan.chunk_rows);
  start = space.take<int32_t>(threads * plan.packed.group_columns);
  tap = space.take<int32_t>(threads * plan.packed.taps);
  patches = space.take<uint8_t>(threads * plan.patches_bytes());
}

void run_int8_conv(const Int8ConvKernel& kernel, const Int8ConvProblem& problem, const Int8ConvArgs& args,
                   const Int8ConvPacked& weights, ParallelFor& parallel_for) {
  const Int8ConvPlan plan(kernel, problem, parallel_for.threads());
  Workspace space(args.workspace, args.workspace_bytes);
  const Int8ConvScratch scratch(plan, problem, parallel_for.threads(), space);
  const Int8ConvRun run{
      kernel, problem, args, weights, plan, scratch, kernel.split_row != nullptr && weights.shallow};
  run.prepare();
  if (weights.layout == Int8ConvLayout::kDepthwise)
    return parallel_for.run(plan.chunks, [&](int64_t t, int thread) { run.depthwise_task(t, thread); });
  if (run.split && weights.layout == Int8ConvLayout::kDirect) run.split_input(parallel_for);
  parallel_for.run(plan.tasks(), [&](int64_t t, int thread) { run.task(t, thread); });
}

}  // namespace halftone::kernels
