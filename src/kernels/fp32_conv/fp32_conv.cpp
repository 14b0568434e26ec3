#include "kernels/fp32_conv/fp32_conv.h"

#include "base/errors.h"
#include "kernels/common/kernel_table.h"
#include "kernels/fp32_conv/drivers.h"
#include "kernels/fp32_conv/kernels.h"
#include "kernels/fp32_conv/pack.h"

namespace halftone::kernels {
namespace {

bool few_channels_a_group(const ConvShape& s) {
  const int64_t width = s.group_in_channels();
  return (s.groups > 1 || width == 1) && width == s.group_out_channels() &&
         (width == 1 || width == 2 || width == 4 || width == 8);
}

const char* refuse_gemm(const Fp32ConvProblem& p) {
  return fp32_conv_cannot(ConvAlgorithm::kGemm, p);
}

const char* refuse_depthwise(const Fp32ConvProblem& p) {
  return fp32_conv_cannot(ConvAlgorithm::kDepthwise, p);
}

const char* refuse_gemm512(const Fp32ConvProblem& p) {
  if (refuse_depthwise(p) == nullptr) return "small groups are faster as vectors across groups";
  if (p.shape.group_out_channels() <= kFp32ConvTile) return "no more channels than a panel of 16 has";
  return nullptr;
}

// Tiles of m x m outputs. Their number is the height of the matrices that are multiplied: with fewer than 8
// the transformed weights, 4 or 1.8 times as many, cost more to read than multiplications are saved (7x7 with
// 512 channels, batch 1: 1.49 ms with 4 tiles of 4x4, 0.91 ms with 16 of 2x2, 1.25 ms direct), unless they
// are few.
constexpr int64_t kMinTiles = 8;
constexpr int64_t kFewWeights = 128 * 128;

const char* refuse_winograd(const Fp32ConvProblem& p, ConvAlgorithm algorithm) {
  if (const char* reason = fp32_conv_cannot(algorithm, p)) return reason;
  const ConvShape& s = p.shape;
  const int64_t m = winograd_outputs(algorithm);
  const int64_t tiles = s.batch * ((s.out[1] + m - 1) / m) * ((s.out[2] + m - 1) / m);
  return tiles < kMinTiles && s.in_channels * s.out_channels > kFewWeights
             ? "so few tiles that reading the transformed weights costs more than it saves"
             : nullptr;
}

const char* refuse_winograd4(const Fp32ConvProblem& p) {
  return refuse_winograd(p, ConvAlgorithm::kWinograd4);
}

const char* refuse_winograd2(const Fp32ConvProblem& p) {
  return refuse_winograd(p, ConvAlgorithm::kWinograd2);
}

constexpr Fp32ConvKernel kConvTable[] = {
#if defined(HALFTONE_X86)
    {"fp32_conv_winograd4_12x32_avx512vnni", Isa::kAvx512Vnni, refuse_winograd4, ConvAlgorithm::kWinograd4,
     kFp32ConvTile512, 12, &kFp32ConvAvx512},
    {"fp32_conv_winograd2_12x32_avx512vnni", Isa::kAvx512Vnni, refuse_winograd2, ConvAlgorithm::kWinograd2,
     kFp32ConvTile512, 12, &kFp32ConvAvx512},
    {"fp32_conv_gemm_12x32_avx512vnni", Isa::kAvx512Vnni, refuse_gemm512, ConvAlgorithm::kGemm,
     kFp32ConvTile512, 12, &kFp32ConvAvx512},
    {"fp32_conv_winograd4_6x16_avx2", Isa::kAvx2, refuse_winograd4, ConvAlgorithm::kWinograd4, kFp32ConvTile,
     6, &kFp32ConvAvx2},
    {"fp32_conv_winograd2_6x16_avx2", Isa::kAvx2, refuse_winograd2, ConvAlgorithm::kWinograd2, kFp32ConvTile,
     6, &kFp32ConvAvx2},
    {"fp32_conv_depthwise_4x16_avx2", Isa::kAvx2, refuse_depthwise, ConvAlgorithm::kDepthwise, kFp32ConvTile,
     4, &kFp32ConvAvx2},
    {"fp32_conv_gemm_6x16_avx2", Isa::kAvx2, refuse_gemm, ConvAlgorithm::kGemm, kFp32ConvTile, 6,
     &kFp32ConvAvx2},
#endif
    {"fp32_conv_depthwise_scalar", Isa::kScalar, refuse_depthwise, ConvAlgorithm::kDepthwise, kFp32ConvTile,
     1, &kFp32ConvScalar},
    {"fp32_conv_gemm_4x16_scalar", Isa::kScalar, refuse_gemm, ConvAlgorithm::kGemm, kFp32ConvTile, 4,
     &kFp32ConvScalar},
};

void check_conv_args(const ConvShape& s, const Fp32ConvArgs& a) {
  const auto refuse = [](const char* what) { fail(ErrorCode::kInvalidArgument, "fp32_conv: {}", what); };
  if (a.x == nullptr) refuse("no input");
  if (a.out == nullptr) refuse("no output");
  if (a.out_stride < s.out_channels)
    refuse("the output's pixels overlap: the stride is less than the channels");
  if (a.residual != nullptr && a.residual_stride < s.out_channels)
    refuse("the residual's stride is less than the channels");
  if (a.activate.kind == ConvActivation::kClamp && !(a.activate.lo <= a.activate.hi))
    refuse("a clamp whose lower bound is not below its upper one");
}

void plan_workspace(const Fp32ConvKernel& kernel, const ConvShape& s, int threads, Workspace& space) {
  switch (kernel.algorithm) {
    case ConvAlgorithm::kGemm:
      return fp32_conv_gemm_space(kernel, s, threads, space);
    case ConvAlgorithm::kDepthwise:
      return fp32_conv_depthwise_space(s, threads, space);
    case ConvAlgorithm::kWinograd4:
    case ConvAlgorithm::kWinograd2:
      return fp32_conv_winograd_space(kernel, s, threads, space);
  }
}

}  // namespace

const char* fp32_conv_cannot(ConvAlgorithm algorithm, const Fp32ConvProblem& p) {
  const ConvShape& s = p.shape;
  if (algorithm == ConvAlgorithm::kGemm) return nullptr;
  if (p.strided_channels) return "the input's channels are not neighbours in memory";
  if (algorithm == ConvAlgorithm::kDepthwise)
    return few_channels_a_group(s) ? nullptr : "not groups of 1, 2, 4 or 8 inputs and as many outputs";
  if (!p.winograd) return "Winograd's larger error is not allowed";
  if (s.transposed || s.groups != 1) return "transposed or grouped";
  const ConvExtent ones{1, 1, 1}, kernel{1, 3, 3};
  if (s.kernel != kernel || s.stride != ones || s.dilation != ones)
    return "not 3x3 with stride 1 and dilation 1";
  if (s.in[0] != 1 || s.pad[0] != 0) return "has a depth";
  if (s.in_channels % 16 != 0 || s.out_channels % 16 != 0) return "channels that are no multiple of 16";
  return nullptr;
}

void check_fp32_conv_fits(const Fp32ConvKernel& kernel, const ConvShape& s, bool strided_channels) {
  if (const char* reason = fp32_conv_cannot(kernel.algorithm, {s, true, strided_channels}))
    fail(ErrorCode::kInvalidArgument, "fp32_conv: {} cannot compute this: {}", kernel.name, reason);
}

Fp32ConvTarget Fp32ConvCall::target(const int64_t* pixels, int64_t channel, int64_t channels) const {
  return {pixels,
          channels,
          args.bias == nullptr ? nullptr : args.bias + channel,
          args.residual == nullptr ? nullptr : args.residual + channel,
          args.residual_stride,
          args.out + channel,
          args.out_stride,
          args.activate};
}

std::span<const Fp32ConvKernel> fp32_conv_kernels() {
  return kConvTable;
}

const Fp32ConvKernel& choose_fp32_conv(const Fp32ConvProblem& problem, Isa isa) {
  check_conv_shape("fp32_conv", problem.shape);
  return choose_kernel(fp32_conv_kernels(), problem, isa);
}

ConvStrides channels_last_strides(const ConvShape& s, int64_t pixel) {
  ConvStrides strides;
  strides.pixel = {s.in[1] * s.in[2] * pixel, s.in[2] * pixel, pixel};
  strides.batch = s.in_pixels() * pixel;
  return strides;
}

size_t fp32_conv_workspace_bytes(const Fp32ConvKernel& kernel, const ConvShape& s, int threads) {
  check_conv_shape("fp32_conv", s);
  Workspace count;
  plan_workspace(kernel, s, threads, count);
  return count.bytes_needed();
}

void fp32_conv(const Fp32ConvKernel& kernel, const ConvShape& s, const Fp32ConvArgs& args,
               ParallelFor& parallel_for) {
  check_conv_shape("fp32_conv", s);
  check_fp32_conv_fits(kernel, s, args.x_strides.channel != 1);
  const float* weights = open_fp32_conv_packed(kernel, s, args.weights);
  if (s.batch == 0) return;
  check_conv_args(s, args);
  Workspace space(args.workspace, args.workspace_bytes);
  const Fp32ConvCall call{kernel, s, args, weights};
  if (kernel.algorithm == ConvAlgorithm::kGemm) return run_fp32_conv_gemm(call, space, parallel_for);
  if (kernel.algorithm == ConvAlgorithm::kDepthwise)
    return run_fp32_conv_depthwise(call, space, parallel_for);
  run_fp32_conv_winograd(call, space, parallel_for);
}

}  // namespace halftone::kernels
