#include "kernels/pooling/pooling.h"

#include <algorithm>

#include "base/errors.h"
#include "kernels/pooling/kernels.h"

namespace halftone::kernels {
namespace {

const char* take_every_pool(const PoolProblem&) {
  return nullptr;
}

constexpr PoolKernel kPoolTable[] = {
#if defined(HALFTONE_X86)
    {"pooling_f32_1x32_avx2", Isa::kAvx2, take_every_pool, pool_max_avx2, pool_mean_avx2},
#endif
    {"pooling_f32_1x1_scalar", Isa::kScalar, take_every_pool, pool_max_scalar, pool_mean_scalar},
};

constexpr int64_t kFewRows = 16;        // fewer rows than this are split by channels too
constexpr int64_t kChannelsATime = 64;  // then, in blocks of so many

void check_pool(const PoolProblem& p, const PoolArgs& args) {
  if (p.batch < 0 || p.channels < 0)
    fail(ErrorCode::kInvalidArgument, "pooling: a batch of {} with {} channels", p.batch, p.channels);
  for (size_t d = 0; d < kConvDims; ++d) {
    if (p.in[d] < 0 || p.out[d] < 0 || p.step[d] < 1)
      fail(ErrorCode::kInvalidArgument, "pooling: {} to {} positions in steps of {}", p.in[d], p.out[d],
           p.step[d]);
    if (std::cmp_less(args.runs[d].size(), p.out[d]))
      fail(ErrorCode::kInvalidArgument, "pooling: {} runs for {} positions", args.runs[d].size(), p.out[d]);
    for (const PoolRun& run : args.runs[d]) {
      const bool inside = run.count == 0 || (run.first >= 0 && run.count > 0 &&
                                             run.first + (run.count - 1) * p.step[d] < p.in[d]);
      if (!inside || run.divide < 1)
        fail(ErrorCode::kInvalidArgument, "pooling: a run of {} from {} in {} positions", run.count,
             run.first, p.in[d]);
    }
  }
}

/// What the tasks share; a task is one row of output pixels, for some of the channels.
struct PoolRows {
  const PoolKernel& kernel;
  const PoolProblem& problem;
  const PoolArgs& args;
  ConvExtent stride;  ///< of the input, in elements

  void run(int64_t row, int64_t channel, int64_t channels) const {
    const int64_t h = row % problem.out[1], d = row / problem.out[1] % problem.out[0],
                  n = row / problem.out[1] / problem.out[0];
    const PoolRun &deep = args.runs[0][static_cast<size_t>(d)], &high = args.runs[1][static_cast<size_t>(h)];
    const float* image = args.x + n * problem.in[0] * stride[0] + channel;
    const float* start = image + deep.first * stride[0] + high.first * stride[1];
    float* y = args.y + row * problem.out[2] * args.y_stride + channel;
    for (int64_t w = 0; w < problem.out[2]; ++w, y += args.y_stride) {
      const PoolRun& wide = args.runs[2][static_cast<size_t>(w)];
      PoolPatch patch;
      patch.x = start + wide.first * stride[2];
      const ConvExtent count = {deep.count, high.count, wide.count};
      for (size_t i = 0; i < kConvDims; ++i) {
        patch.count[i] = count[i];
        patch.stride[i] = stride[i] * problem.step[i];
      }
      patch.channels = channels;
      patch.divide = static_cast<float>(deep.divide * high.divide * wide.divide);
      patch.y = y;
      (problem.kind == PoolKind::kMax ? kernel.max : kernel.mean)(patch);
    }
  }
};

}  // namespace

std::span<const PoolKernel> pool_kernels() {
  return kPoolTable;
}

void pool(const PoolKernel& kernel, const PoolProblem& p, const PoolArgs& args, ParallelFor& parallel_for) {
  check_pool(p, args);
  const int64_t rows = p.batch * p.out[0] * p.out[1];
  if (rows == 0 || p.out[2] == 0 || p.channels == 0) return;
  const PoolRows work{
      kernel, p, args, {p.in[1] * p.in[2] * args.x_stride, p.in[2] * args.x_stride, args.x_stride}};
  const int64_t block = rows < kFewRows ? std::min(kChannelsATime, p.channels) : p.channels;
  const int64_t blocks = (p.channels + block - 1) / block;
  parallel_for.run(rows * blocks, [&](int64_t task, int) {
    const int64_t channel = task % blocks * block;
    work.run(task / blocks, channel, std::min(block, p.channels - channel));
  });
}

}  // namespace halftone::kernels
