#include "kernels/int8_conv/int8_conv.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "kernels/common/kernel_table.h"
#include "kernels/int8_conv/driver.h"
#include "kernels/int8_conv/kernels.h"

namespace halftone::kernels {
namespace {

const char* take_every_conv(const Int8ConvProblem&) {
  return nullptr;
}

[[maybe_unused]] const char* take_dense(const Int8ConvProblem& p) {
  return int8_conv_layout(p.shape) == Int8ConvLayout::kDepthwise
             ? "sums over channels: not for depthwise ones"
             : nullptr;
}

[[maybe_unused]] const char* take_dense_7_bits(const Int8ConvProblem& p) {
  if (p.weight_bits == 8 && p.activation_bits == 8)
    return "vpmaddubsw would saturate: needs weights or activations of 7 bits";
  return take_dense(p);
}

[[maybe_unused]] const char* take_depthwise(const Int8ConvProblem& p) {
  return int8_conv_layout(p.shape) == Int8ConvLayout::kDepthwise ? nullptr : "only for depthwise ones";
}

constexpr Int8ConvKernel kInt8ConvTable[] = {
#if defined(HALFTONE_X86)
    {"int8_conv_u8s8_8x32_avx512vnni",
     Isa::kAvx512Vnni,
     take_dense,
     {32},
     8,
     nullptr,
     int8_conv_avx512vnni,
     nullptr},
    {"int8_conv_u8s7_12x16_avx2",
     Isa::kAvx2,
     take_dense_7_bits,
     {16, true},
     12,
     nullptr,
     int8_conv_avx2,
     nullptr},
    {"int8_conv_u8s8_12x16_avx2",
     Isa::kAvx2,
     take_dense,
     {16, true},
     12,
     int8_split_row_avx2,
     int8_conv_avx2,
     nullptr},
    {"int8_conv_depthwise_u8s8_16_avx2",
     Isa::kAvx2,
     take_depthwise,
     {16},
     1,
     nullptr,
     nullptr,
     int8_depthwise_avx2},
#endif
    {"int8_conv_u8s8_4x16_scalar",
     Isa::kScalar,
     take_every_conv,
     {16},
     4,
     nullptr,
     int8_conv_scalar,
     int8_depthwise_scalar},
};

void require_byte(const char* what, int32_t value, int32_t most = 255) {
  if (value < 0 || value > most)
    fail(ErrorCode::kInvalidArgument, "int8_conv: {} is {}, outside of [0, {}]", what, value, most);
}

void require_stride(const char* what, int64_t stride, int64_t channels) {
  if (stride < channels)
    fail(ErrorCode::kInvalidArgument, "int8_conv: the {} has {} channels, its pixels are {} apart", what,
         channels, stride);
}

void check_int8_conv_args(const Int8ConvProblem& p, const Int8ConvArgs& args) {
  const ConvShape& s = p.shape;
  if (args.x == nullptr || args.multiplier == nullptr || args.offset == nullptr)
    fail(ErrorCode::kInvalidArgument, "int8_conv: give an input, multipliers and offsets");
  if ((args.out == nullptr) == (args.out_f32 == nullptr))
    fail(ErrorCode::kInvalidArgument, "int8_conv: give one output, of bytes or of floats");
  require_stride("input", args.x_stride, s.in_channels);
  require_stride("output", args.out_stride, s.out_channels);
  if (args.residual != nullptr) require_stride("residual", args.residual_stride, s.out_channels);
  require_byte("the input's zero point", args.x_zero_point, p.activation_bits == 7 ? 127 : 255);
  require_byte("the residual's zero point", args.residual_zero_point);
  require_byte("the output's zero point", args.out_zero_point);
  require_byte("the upper limit", args.hi);
  require_byte("the lower limit", args.lo, args.hi);
}

bool usable_scale(float scale) {
  return scale >= 0.0f && std::isfinite(scale);
}

}  // namespace

std::span<const Int8ConvKernel> int8_conv_kernels() {
  return kInt8ConvTable;
}

void check_int8_conv_problem(const Int8ConvProblem& p) {
  check_conv_shape("int8_conv", p.shape);
  for (const int bits : {p.weight_bits, p.activation_bits})
    if (bits != 7 && bits != 8)
      fail(ErrorCode::kInvalidArgument, "int8_conv: operands have 8 or 7 bits, not {}", bits);
  const int64_t k = p.shape.taps() * p.shape.group_in_channels();
  if (k > kInt8ConvMaxK)
    fail(ErrorCode::kInvalidArgument, "int8_conv: a channel has {} weights; at most {} are summed in 32 bits",
         k, kInt8ConvMaxK);
}

const Int8ConvKernel& choose_int8_conv(const Int8ConvProblem& problem, Isa isa) {
  check_int8_conv_problem(problem);
  return choose_kernel(int8_conv_kernels(), problem, isa);
}

void int8_conv_factors(float x_scale, std::span<const float> weight_scale, const float* bias, float out_scale,
                       float* multiplier, float* offset) {
  if (!usable_scale(x_scale) || !usable_scale(out_scale))
    fail(ErrorCode::kInvalidArgument, "int8_conv: the scales of input and output are {} and {}", x_scale,
         out_scale);
  const double unit = out_scale == 0.0f ? 1.0 : double{out_scale};
  for (size_t c = 0; c < weight_scale.size(); ++c) {
    if (!usable_scale(weight_scale[c]))
      fail(ErrorCode::kInvalidArgument, "int8_conv: the weight scale of channel {} is {}", c,
           weight_scale[c]);
    multiplier[c] = static_cast<float>(double{x_scale} * weight_scale[c] / unit);
    offset[c] = bias == nullptr ? 0.0f : static_cast<float>(bias[c] / unit);
    if (!std::isfinite(multiplier[c]) || !std::isfinite(offset[c]))
      fail(ErrorCode::kInvalidArgument, "int8_conv: channel {} has the multiplier {} and the offset {}", c,
           multiplier[c], offset[c]);
  }
}

size_t int8_conv_workspace_bytes(const Int8ConvKernel& kernel, const Int8ConvProblem& problem, int threads) {
  check_int8_conv_problem(problem);
  // A call inside another parallel region has fewer threads, and larger chunks.
  size_t bytes = 0;
  for (int t = 1; t <= threads; ++t) {
    Workspace count;
    const Int8ConvScratch scratch(Int8ConvPlan(kernel, problem, t), problem, t, count);
    bytes = std::max(bytes, count.bytes_needed());
  }
  return bytes;
}

void int8_conv(const Int8ConvKernel& kernel, const Int8ConvProblem& problem, const Int8ConvArgs& args,
               ParallelFor& parallel_for) {
  check_int8_conv_problem(problem);
  const char* reason = kernel.refuse(problem);
  if (reason != nullptr) fail(ErrorCode::kInvalidArgument, "{}: {}", kernel.name, reason);
  const Int8ConvPacked weights = open_int8_conv_packed(problem, args.weights, kernel.tile);
  if (problem.shape.batch == 0) return;
  check_int8_conv_args(problem, args);
  run_int8_conv(kernel, problem, args, weights, parallel_for);
}

}  // namespace halftone::kernels
