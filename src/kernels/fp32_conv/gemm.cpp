// Convolution as tiles of pixels times panels of output channels.
//
// A task has some tiles of pixels and some panels. The depth (taps times channels) is cut into slabs of about
// 256 steps, 16 KB of a panel: the slab stays in the first-level cache while all tiles of the task are
// multiplied with it, and the tiles' own part of the depth stays in the second while all panels pass by.
// Pixels are read where they are, through a pointer for each tap. With few channels a pointer serves a whole
// row of taps, if those are neighbours in memory; if they are not, patches are copied, and all taps become
// channels. An input whose channels are not neighbours is copied to channels last first, if it has few.
#include <algorithm>

#include "kernels/common/packed_block.h"
#include "kernels/common/row_blocks.h"
#include "kernels/fp32_conv/drivers.h"

namespace halftone::kernels {
namespace {

constexpr int64_t kTaskPixels = 108;
constexpr int64_t kSlabSteps = 256;
constexpr int64_t kGemmSumFloats = 32 * 1024;
constexpr int64_t kPatchFloats = 64 * 1024;
constexpr int64_t kPixelChannels = 16;  // fewer are not worth a pointer of their own

enum class Reading { kPixels, kLines, kPatches };

Reading reading_of(const Fp32ConvCall& call, const ConvPhase& phase) {
  if (call.args.x_strides.channel != 1) return Reading::kPatches;
  if (phase.tap_count() <= 1 || call.shape.group_in_channels() >= kPixelChannels) return Reading::kPixels;
  return conv_lines_are_neighbours(call, phase) ? Reading::kLines : Reading::kPatches;
}

// What a thread writes to.
struct GemmScratch {
  const float** rows;
  int64_t* out;
  float* patches;
  float* sums;
};

// Pieces of the workspace.
struct GemmSpace {
  float* zeros;
  const float** rows;
  int64_t* out;
  float* patches;
  float* sums;
  float* dense;  // the input in channels last, where there are few
  int64_t row_count, patch_floats, zero_count;

  GemmSpace(const Fp32ConvKernel& kernel, const ConvShape& s, int threads, Workspace& space)
      : row_count(s.taps() * kTaskPixels),
        patch_floats(std::max(kPatchFloats, kernel.rows * s.taps() * s.group_in_channels())),
        zero_count(std::max(s.in_channels, s.kernel[2] * kPixelChannels)) {
    zeros = space.take<float>(zero_count);
    rows = space.take<const float*>(threads * row_count);
    out = space.take<int64_t>(threads * kTaskPixels);
    patches = space.take<float>(threads * patch_floats);
    sums = space.take<float>(threads * kGemmSumFloats);
    dense = space.take<float>(s.in_channels < kPixelChannels ? s.batch * s.in_pixels() * s.in_channels : 0);
  }
  GemmScratch of(int thread) const {
    return {rows + thread * row_count, out + thread * kTaskPixels, patches + thread * patch_floats,
            sums + thread * kGemmSumFloats};
  }
};

// How one phase is cut. Tiles do not depend on the number of threads, so no sum does.
struct GemmCut {
  RowBlocks tiles;
  int64_t panels;  // of all groups
  int64_t pixel_parts, panel_parts;

  GemmCut(const Fp32ConvCall& call, const ConvPhase& phase, int64_t max_pixels, int threads)
      : tiles(call.shape.batch * phase.pixels(), call.kernel.rows),
        panels(call.shape.groups * packed_panel_count(call.shape.group_out_channels(), call.kernel.tile_n)) {
    const int64_t max_tiles = std::max<int64_t>(1, max_pixels / call.kernel.rows);
    pixel_parts = (tiles.count() + max_tiles - 1) / max_tiles;
    panel_parts = 1;
    if (threads == 1) return;
    // A task reads its panels once for all of its tiles, so few tiles are not cut further.
    if (tiles.count() >= threads * kFewTiles) {
      pixel_parts = (std::max<int64_t>(pixel_parts, threads) + threads - 1) / threads * threads;
    } else {
      panel_parts = std::min<int64_t>(panels, 2 * threads);
    }
  }
  int64_t tasks() const { return pixel_parts * panel_parts; }
  int64_t first_tile(int64_t part) const { return tiles.count() * part / pixel_parts; }
  int64_t first_panel(int64_t part) const { return panels * part / panel_parts; }

  static constexpr int64_t kFewTiles = 8;
};

// The tiles of one task.
class GemmTask {
 public:
  GemmTask(const Fp32ConvCall& call, const ConvPhase& phase, const GemmCut& cut, Reading reading,
           int64_t first_tile, int64_t last_tile, const GemmScratch& scratch)
      : call_(call),
        phase_(phase),
        cut_(cut),
        reading_(reading),
        first_tile_(first_tile),
        last_tile_(last_tile),
        first_pixel_(cut.tiles.begin(first_tile)),
        pixels_(cut.tiles.begin(last_tile) - first_pixel_),
        scratch_(scratch),
        taps_(reading == Reading::kPixels  ? phase.tap_count()
              : reading == Reading::kLines ? phase.taps[0] * phase.taps[1]
                                           : 1),
        channels_(call.shape.group_in_channels() * (taps_ == 0 ? 1 : phase.tap_count() / taps_)) {}

  void run(int64_t first_panel, int64_t last_panel, const float* zeros) {
    if (reading_ == Reading::kPatches) {
      ConvPixelWalk walk(call_.shape, phase_, first_pixel_);
      for (int64_t i = 0; i < pixels_; ++i, walk.next()) {
        scratch_.out[i] = walk.out();
        scratch_.rows[i] = scratch_.patches + i * channels_;
      }
    } else if (reading_ == Reading::kLines) {
      gather_lines(call_, phase_, zeros, first_pixel_, pixels_, scratch_.rows, scratch_.out,
                   scratch_.patches);
    } else {
      gather_pixels(call_, phase_, zeros, first_pixel_, pixels_, scratch_.rows, scratch_.out);
    }
    const int64_t group_panels = cut_.panels / call_.shape.groups;
    const int64_t chunk = std::max<int64_t>(1, kGemmSumFloats / (pixels_ * call_.kernel.tile_n));
    for (int64_t group = -1; first_panel < last_panel;) {
      if (first_panel / group_panels != group) {
        group = first_panel / group_panels;
        if (reading_ == Reading::kPatches)
          gather_patches(call_, phase_, group, first_pixel_, pixels_, scratch_.patches);
      }
      const int64_t end = std::min({last_panel, (group + 1) * group_panels, first_panel + chunk});
      multiply(group, first_panel, end);
      finish(group, first_panel - group * group_panels, end - first_panel);
      first_panel = end;
    }
  }

 private:
  // Panels of one group, all of the depth.
  void multiply(int64_t group, int64_t first_panel, int64_t last_panel) {
    // Whole taps, or a part of one.
    const int64_t parts = std::max<int64_t>(1, (channels_ + kSlabSteps - 1) / kSlabSteps);
    const int64_t slab_channels = std::max<int64_t>(1, (channels_ + parts - 1) / parts);
    const int64_t slab_taps =
        parts > 1 ? 1 : std::max<int64_t>(1, kSlabSteps / std::max<int64_t>(1, channels_));
    for (int64_t tap = 0; tap == 0 || tap < taps_; tap += slab_taps) {
      for (int64_t c = 0; c == 0 || c < channels_; c += slab_channels) {
        float* sums = scratch_.sums;
        for (int64_t panel = first_panel; panel < last_panel; ++panel)
          sums = multiply_slab(
              group, panel,
              {tap, std::min(slab_taps, taps_ - tap), c, std::min(slab_channels, channels_ - c)}, sums);
      }
    }
  }

  struct Slab {
    int64_t tap, taps, channel, channels;
  };

  // One panel's slab times all tiles; gives where the next panel's sums begin.
  float* multiply_slab(int64_t group, int64_t panel, const Slab& slab, float* sums) {
    const ConvShape& s = call_.shape;
    const int64_t tile_n = call_.kernel.tile_n, ic = s.group_in_channels();
    const int64_t panel_floats = ic * s.taps() * tile_n;
    const float* w = call_.weights + panel * panel_floats +
                     (phase_.tap_offset * ic + slab.tap * channels_ + slab.channel) * tile_n;
    const int64_t steps = std::max<int64_t>(1, slab.taps * slab.channels);
    const int64_t tiles = last_tile_ - first_tile_, share = steps * tile_n / tiles;
    // Beyond the last panel the hint points past the block: harmless, but no pointer may be formed there.
    const float* next = panel + 1 < cut_.panels ? w + panel_floats : w;
    Fp32ConvStep step{scratch_.rows + slab.tap * pixels_,
                      pixels_,
                      0,
                      slab.taps,
                      slab.channel + (reading_ == Reading::kPixels ? group * ic : 0),
                      slab.channels,
                      w,
                      channels_ * tile_n,
                      slab.tap > 0 || slab.channel > 0,
                      sums,
                      tile_n,
                      next,
                      share * int64_t{sizeof(float)} / steps};
    for (int64_t t = first_tile_; t < last_tile_; ++t) {
      step.count = cut_.tiles.rows(t);
      call_.kernel.functions->multiply(step);
      step.rows += step.count;
      step.sums += step.count * tile_n;
      step.next += share;
    }
    return step.sums;
  }

  void finish(int64_t group, int64_t panel, int64_t panels) {
    const ConvShape& s = call_.shape;
    const int64_t tile_n = call_.kernel.tile_n, column = panel * tile_n;
    const int64_t columns = std::min(panels * tile_n, s.group_out_channels() - column);
    call_.kernel.functions->finish(
        {scratch_.sums, pixels_ * tile_n, tile_n, pixels_,
         call_.target(scratch_.out, group * s.group_out_channels() + column, columns)});
  }

  const Fp32ConvCall& call_;
  const ConvPhase& phase_;
  const GemmCut& cut_;
  Reading reading_;
  int64_t first_tile_, last_tile_, first_pixel_, pixels_;
  GemmScratch scratch_;
  int64_t taps_, channels_;
};

void run_phase(const Fp32ConvCall& call, const ConvPhase& phase, const GemmSpace& scratch,
               ParallelFor& parallel_for) {
  if (phase.pixels() == 0) return;
  const Reading reading = reading_of(call, phase);
  const int64_t patch = std::max<int64_t>(1, phase.tap_count() * call.shape.group_in_channels());
  const int64_t most =
      reading == Reading::kPixels ? kTaskPixels : std::min(kTaskPixels, scratch.patch_floats / patch);
  const GemmCut cut(call, phase, most, parallel_for.threads());
  parallel_for.run(cut.tasks(), [&](int64_t task, int thread) {
    const int64_t part = task / cut.panel_parts, panel_part = task % cut.panel_parts;
    GemmTask(call, phase, cut, reading, cut.first_tile(part), cut.first_tile(part + 1), scratch.of(thread))
        .run(cut.first_panel(panel_part), cut.first_panel(panel_part + 1), scratch.zeros);
  });
}

}  // namespace

void fp32_conv_gemm_space(const Fp32ConvKernel& kernel, const ConvShape& s, int threads, Workspace& space) {
  const GemmSpace counted(kernel, s, threads, space);
}

void run_fp32_conv_gemm(const Fp32ConvCall& given, Workspace& space, ParallelFor& parallel_for) {
  const ConvShape& s = given.shape;
  const GemmSpace scratch(given.kernel, s, parallel_for.threads(), space);
  std::fill(scratch.zeros, scratch.zeros + scratch.zero_count, 0.0f);
  Fp32ConvArgs args = given.args;
  if (args.x_strides.channel != 1 && s.in_channels < kPixelChannels) {
    parallel_for.run(s.batch * s.in[0] * s.in[1],
                     [&](int64_t row, int) { copy_channels_last(given, row, scratch.dense); });
    args.x = scratch.dense;
    args.x_strides = channels_last_strides(s, s.in_channels);
  }
  const Fp32ConvCall call{given.kernel, s, args, given.weights};
  for (int64_t p = 0; p < conv_phase_count(s); ++p) run_phase(call, conv_phase(s, p), scratch, parallel_for);
}

}  // namespace halftone::kernels
