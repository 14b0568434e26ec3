// Convolution with one or few channels a group: vectors of channels across groups, pixel by pixel.
#include <algorithm>

#include "kernels/common/packed_block.h"
#include "kernels/fp32_conv/drivers.h"

namespace halftone::kernels {
namespace {

constexpr int64_t kDepthwisePixels = 64;  // of a task

struct DepthwiseSpace {
  float* zeros;
  const float** rows;
  int64_t* out;
  int64_t row_count;

  DepthwiseSpace(const ConvShape& s, int threads, Workspace& space) : row_count(s.taps() * kDepthwisePixels) {
    zeros = space.take<float>(s.in_channels);
    rows = space.take<const float*>(threads * row_count);
    out = space.take<int64_t>(threads * kDepthwisePixels);
  }
};

}  // namespace

void fp32_conv_depthwise_space(const ConvShape& s, int threads, Workspace& space) {
  const DepthwiseSpace counted(s, threads, space);
}

void run_fp32_conv_depthwise(const Fp32ConvCall& call, Workspace& space, ParallelFor& parallel_for) {
  const ConvShape& s = call.shape;
  const DepthwiseSpace scratch(s, parallel_for.threads(), space);
  std::fill(scratch.zeros, scratch.zeros + s.in_channels, 0.0f);
  const int64_t width = s.group_in_channels();
  const int64_t stride = packed_panel_count(s.out_channels, call.kernel.tile_n) * call.kernel.tile_n;
  for (int64_t p = 0; p < conv_phase_count(s); ++p) {
    const ConvPhase phase = conv_phase(s, p);
    const int64_t pixels = s.batch * phase.pixels();
    const int64_t tasks = std::max<int64_t>((pixels + kDepthwisePixels - 1) / kDepthwisePixels,
                                            std::min<int64_t>(pixels, parallel_for.threads()));
    parallel_for.run(tasks, [&](int64_t task, int thread) {
      const int64_t first = pixels * task / tasks, count = pixels * (task + 1) / tasks - first;
      const float** rows = scratch.rows + thread * scratch.row_count;
      int64_t* out = scratch.out + thread * kDepthwisePixels;
      gather_pixels(call, phase, scratch.zeros, first, count, rows, out);
      call.kernel.functions->depthwise({rows, count, count, phase.tap_count(), width,
                                        call.weights + phase.tap_offset * width * stride, stride,
                                        call.target(out, 0, s.out_channels)});
    });
  }
}

}  // namespace halftone::kernels
