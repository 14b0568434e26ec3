// at::conv2d in channels last, which is oneDNN's.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include "conv_peer.h"
#include "graph/aten/aten_parallel_for.h"

namespace halftone::bench {

std::function<void()> conv_peer(const kernels::ConvShape& s, bool relu, bool residual) {
  const auto images = [](at::IntArrayRef sizes) {
    return at::randn(sizes).contiguous(at::MemoryFormat::ChannelsLast);
  };
  const at::Tensor x = images({s.batch, s.in_channels, s.in[1], s.in[2]});
  const at::Tensor w = images({s.out_channels, s.group_in_channels(), s.kernel[1], s.kernel[2]});
  const at::Tensor bias = at::randn({s.out_channels});
  const at::Tensor kept = residual ? images({s.batch, s.out_channels, s.out[1], s.out[2]}) : at::Tensor();
  return [=] {
    const c10::InferenceMode guard;
    at::Tensor y = at::conv2d(x, w, bias, {s.stride[1], s.stride[2]}, at::IntArrayRef({s.pad[1], s.pad[2]}),
                              {s.dilation[1], s.dilation[2]}, s.groups);
    if (residual) y.add_(kept);
    if (relu) y.relu_();
  };
}

std::unique_ptr<ParallelFor> conv_parallel_for(int threads) {
  at::set_num_threads(threads);
  return std::make_unique<AtenParallelFor>();
}

}  // namespace halftone::bench
