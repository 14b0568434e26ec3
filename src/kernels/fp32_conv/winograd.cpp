// 3x3 convolution by Winograd's F(m x m, 3x3): tiles of m x m outputs.
//
// Patches of (m + 2)² pixels are transformed, multiplied with transformed weights place by place (so many
// matrix products, [tiles][in] · [in][out]), and transformed back: (m + 2)² multiplications instead of 9 m² a
// tile and pair of channels. Tiles go through in chunks that stay in the caches. The three steps of a chunk
// are split one after the other; a product's weights are read by one thread only.
#include <algorithm>

#include "kernels/common/packed_block.h"
#include "kernels/common/row_blocks.h"
#include "kernels/fp32_conv/drivers.h"
#include "kernels/fp32_conv/pack.h"

namespace halftone::kernels {
namespace {

constexpr int64_t kChunkBytes = 6 << 20;  // transformed patches and products of a chunk
// A chunk reads all transformed weights: smaller ones would read them for too little work.
constexpr int64_t kMinChunkTiles = 36;
// Input channels of a slab: its part of a panel stays in the first-level cache while all tiles pass.
constexpr int64_t kProductSteps = 256;
constexpr int kMaxPatch = 36;

struct WinogradPlan {
  int m, n;  // outputs and inputs of a tile, in each dimension
  int64_t tiles_high, tiles_wide, tiles;
  int64_t chunk;             // tiles
  int64_t in, out;           // channels, `out` in whole panels
  int64_t v_place, m_place;  // from one place of the transform to the next
  int64_t panels;

  WinogradPlan(const Fp32ConvKernel& kernel, const ConvShape& s)
      : m(winograd_outputs(kernel.algorithm)),
        n(m + 2),
        tiles_high((s.out[1] + m - 1) / m),
        tiles_wide((s.out[2] + m - 1) / m),
        tiles(s.batch * tiles_high * tiles_wide),
        in(s.in_channels),
        panels(packed_panel_count(s.out_channels, kernel.tile_n)) {
    out = panels * kernel.tile_n;
    const int64_t tile_bytes = int64_t{sizeof(float)} * n * n * (in + out);
    const int64_t most = std::max(kMinChunkTiles, kChunkBytes / tile_bytes);
    const int64_t chunks = std::max<int64_t>(1, (tiles + most - 1) / most);
    chunk = (tiles + chunks - 1) / chunks;
    // A line more, so that the places of a tile do not fall into the same sets of the cache.
    v_place = chunk * in + 16;
    m_place = chunk * out + 16;
  }
};

struct WinogradSpace {
  float* zeros;
  const float** rows;
  float* v;
  float* products;

  WinogradSpace(const WinogradPlan& plan, Workspace& space) {
    zeros = space.take<float>(plan.in);
    rows = space.take<const float*>(plan.chunk);
    v = space.take<float>(plan.v_place * plan.n * plan.n);
    products = space.take<float>(plan.m_place * plan.n * plan.n);
  }
};

class WinogradRun {
 public:
  WinogradRun(const Fp32ConvCall& call, Workspace& space)
      : call_(call), plan_(call.kernel, call.shape), space_(plan_, space) {
    std::fill(space_.zeros, space_.zeros + plan_.in, 0.0f);
    for (int64_t t = 0; t < plan_.chunk; ++t) space_.rows[t] = space_.v + t * plan_.in;
  }

  void run(ParallelFor& parallel_for) const {
    for (int64_t first = 0; first < plan_.tiles; first += plan_.chunk) {
      const int64_t count = std::min(plan_.chunk, plan_.tiles - first);
      const int64_t parts =
          std::min<int64_t>(count, parallel_for.threads() == 1 ? 1 : 4 * parallel_for.threads());
      const auto for_tiles = [&](const auto& f) {
        parallel_for.run(parts, [&](int64_t part, int) {
          for (int64_t t = count * part / parts; t < count * (part + 1) / parts; ++t) f(t);
        });
      };
      // Three rounds with a barrier after each: a product needs all tiles of its place, a tile needs all
      // places.
      for_tiles([&](int64_t t) { transform_input(first + t, t); });
      const int64_t places = int64_t{plan_.n} * plan_.n;
      parallel_for.run(places, [&](int64_t place, int) { multiply(place, count); });
      for_tiles([&](int64_t t) { transform_output(first + t, t); });
    }
  }

 private:
  struct Position {
    int64_t image, y, x;  // of the tile's first output
  };

  Position position(int64_t tile) const {
    const int64_t wide = tile % plan_.tiles_wide, rest = tile / plan_.tiles_wide;
    return {rest / plan_.tiles_high, rest % plan_.tiles_high * plan_.m, wide * plan_.m};
  }

  void transform_input(int64_t tile, int64_t slot) const {
    const ConvShape& s = call_.shape;
    const ConvStrides& strides = call_.args.x_strides;
    const Position at = position(tile);
    const float* image = call_.args.x + at.image * strides.batch;
    const float* rows[kMaxPatch];
    for (int i = 0; i < plan_.n; ++i) {
      for (int j = 0; j < plan_.n; ++j) {
        const int64_t y = at.y - s.pad[1] + i, x = at.x - s.pad[2] + j;
        const bool inside = y >= 0 && y < s.in[1] && x >= 0 && x < s.in[2];
        // Padding is a pointer to zeros: the transform has no special case for edges.
        rows[i * plan_.n + j] = inside ? image + y * strides.pixel[1] + x * strides.pixel[2] : space_.zeros;
      }
    }
    const auto transform =
        plan_.m == 4 ? call_.kernel.functions->winograd4_input : call_.kernel.functions->winograd2_input;
    transform({rows, plan_.in, space_.v + slot * plan_.in, plan_.v_place});
  }

  // One place of all tiles: a plain matrix product.
  void multiply(int64_t place, int64_t count) const {
    const int64_t tile_n = call_.kernel.tile_n, panel_floats = plan_.in * tile_n;
    const RowBlocks blocks(count, call_.kernel.rows);
    const int64_t slabs = (plan_.in + kProductSteps - 1) / kProductSteps;
    const int64_t depth = (plan_.in + slabs - 1) / slabs;
    const bool last_place = place + 1 == int64_t{plan_.n} * plan_.n;
    for (int64_t c = 0; c < plan_.in; c += depth) {
      for (int64_t panel = 0; panel < plan_.panels; ++panel) {
        const float* w = call_.weights + (place * plan_.panels + panel) * panel_floats + c * tile_n;
        const int64_t steps = std::min(depth, plan_.in - c), share = steps * tile_n / blocks.count();
        Fp32ConvStep step{space_.rows,
                          0,
                          0,
                          1,
                          place * plan_.v_place + c,
                          steps,
                          w,
                          0,
                          c > 0,
                          space_.products + place * plan_.m_place + panel * tile_n,
                          plan_.out,
                          last_place && panel + 1 == plan_.panels ? w : w + panel_floats,
                          share * int64_t{sizeof(float)} / steps};
        for (int64_t b = 0; b < blocks.count(); ++b) {
          step.count = blocks.rows(b);
          call_.kernel.functions->multiply(step);
          step.rows += step.count;
          step.sums += step.count * plan_.out;
          step.next += share;
        }
      }
    }
  }

  void transform_output(int64_t tile, int64_t slot) const {
    const ConvShape& s = call_.shape;
    const Position at = position(tile);
    int64_t pixels[16];
    for (int i = 0; i < plan_.m; ++i) {
      for (int j = 0; j < plan_.m; ++j) {
        const int64_t y = at.y + i, x = at.x + j;
        // The last tiles reach beyond an output whose size is not a multiple of m: -1 is not written.
        pixels[i * plan_.m + j] =
            y < s.out[1] && x < s.out[2] ? (at.image * s.out[1] + y) * s.out[2] + x : -1;
      }
    }
    const auto transform =
        plan_.m == 4 ? call_.kernel.functions->winograd4_output : call_.kernel.functions->winograd2_output;
    transform({space_.products + slot * plan_.out, plan_.m_place, call_.target(pixels, 0, s.out_channels)});
  }

  const Fp32ConvCall& call_;
  WinogradPlan plan_;
  WinogradSpace space_;
};

}  // namespace

void fp32_conv_winograd_space(const Fp32ConvKernel& kernel, const ConvShape& s, int /*threads*/,
                              Workspace& space) {
  const WinogradSpace counted(WinogradPlan(kernel, s), space);
}

void run_fp32_conv_winograd(const Fp32ConvCall& call, Workspace& space, ParallelFor& parallel_for) {
  WinogradRun(call, space).run(parallel_for);
}

}  // namespace halftone::kernels
