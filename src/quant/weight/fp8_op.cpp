// halftone::fp8_linear
#include <torch/library.h>

#include "kernels/fp8_linear/fp8_linear.h"
#include "quant/weight/differentiable_linear.h"
#include "quant/weight/float8.h"
#include "quant/weight/linear_call.h"
#include "quant/weight/meta_linear.h"
#include "quant/weight/ops.h"
#include "quant/weight/pack_weights.h"

namespace halftone {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
constexpr const char* kName = "halftone::fp8_linear";

void check_parts(const at::Tensor& weight, const at::Tensor& scale, bool per_tensor) {
  check_matrix(kName, weight, at::kFloat8_e4m3fn);
  if (!has_symbols(weight)) check_part(kName, "scale", scale, at::kFloat, {per_tensor ? 1 : weight.size(0)});
}

at::Tensor cpu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
               const OptionalTensor& bias, bool quantize_activations, bool per_tensor) {
  check_parts(weight, scale, per_tensor);
  const int64_t n = weight.size(0), k = weight.size(1);
  LinearCall call(kName, x, n, k, bias);
  // One scale for all rows of x: they are rounded here, because the kernel's own way is row by row.
  const bool round_first = quantize_activations && per_tensor;
  at::Tensor rounded;
  kernels::Fp8LinearProblem problem{call.m(), n, k, kernels::Fp8Activations::kFloat32};
  if (quantize_activations && !per_tensor) problem.activations = kernels::Fp8Activations::kDynamicE4m3;
  const kernels::Fp8LinearKernel& kernel = kernels::choose_fp8_linear(problem);
  const at::Tensor block = packed_fp8(weight, scale, kernel.tile_n);
  kernels::Fp32LinearArgs args = call.float_args(block);
  if (round_first) {
    rounded = round_to_float8(call.rows());
    args.x = rounded.const_data_ptr<float>();
    args.x_stride = k;
  }
  args.workspace_bytes =
      kernels::fp8_linear_workspace_bytes(problem, call.splitter().threads(), args.epilogue.type);
  args.workspace = call.workspace(args.workspace_bytes);
  kernels::fp8_linear(kernel, problem, args, call.splitter());
  return call.result();
}

at::Tensor meta(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                const OptionalTensor& bias, bool quantize_activations, bool per_tensor) {
  check_parts(weight, scale, per_tensor);
  return meta_linear(kName, x, weight.sym_size(0), weight.sym_size(1), bias);
}

at::Tensor autograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                    const OptionalTensor& bias, bool quantize_activations, bool per_tensor) {
  return differentiable_linear(
      x, bias,
      {kName,
       {weight, scale},
       [&](const at::Tensor& input, const OptionalTensor& b) {
         return ops::fp8_linear(input, weight, scale, b, quantize_activations, per_tensor);
       },
       [](const std::vector<at::Tensor>& parts) { return dequantize_float8(parts[0], parts[1]); }});
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def(
      "fp8_linear(Tensor x, Tensor weight, Tensor scale, Tensor? bias=None, *, bool "
      "quantize_activations=False, "
      "bool per_tensor=False) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("fp8_linear", cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("fp8_linear", meta);
}
TORCH_LIBRARY_IMPL(halftone, Autograd, m) {
  m.impl("fp8_linear", autograd);
}

}  // namespace

at::Tensor ops::fp8_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                           const OptionalTensor& bias, bool quantize_activations, bool per_tensor) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(kName, "").typed<decltype(cpu)>();
  return op.call(x, weight, scale, bias, quantize_activations, per_tensor);
}

}  // namespace halftone
