// halftone::bf16_linear
#include <torch/library.h>

#include "kernels/bf16_linear/bf16_linear.h"
#include "quant/weight/differentiable_linear.h"
#include "quant/weight/linear_call.h"
#include "quant/weight/meta_linear.h"
#include "quant/weight/ops.h"
#include "quant/weight/pack_weights.h"

namespace halftone {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
constexpr const char* kName = "halftone::bf16_linear";

at::Tensor cpu(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias) {
  check_matrix(kName, weight, at::kBFloat16);
  LinearCall call(kName, x, weight.size(0), weight.size(1), bias);
  const kernels::Bf16LinearProblem problem{call.m(), call.n(), call.k()};
  const kernels::Bf16LinearKernel& kernel = kernels::choose_bf16_linear(problem);
  const at::Tensor block = packed_bf16(weight, kernel.tile_n);
  kernels::Fp32LinearArgs args = call.float_args(block);
  args.workspace_bytes =
      kernels::bf16_linear_workspace_bytes(problem, call.splitter().threads(), args.epilogue.type);
  args.workspace = call.workspace(args.workspace_bytes);
  kernels::bf16_linear(kernel, problem, args, call.splitter());
  return call.result();
}

at::Tensor meta(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias) {
  check_matrix(kName, weight, at::kBFloat16);
  return meta_linear(kName, x, weight.sym_size(0), weight.sym_size(1), bias);
}

at::Tensor autograd(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias) {
  return differentiable_linear(
      x, bias,
      {kName,
       {weight},
       [&](const at::Tensor& input, const OptionalTensor& b) { return ops::bf16_linear(input, weight, b); },
       [](const std::vector<at::Tensor>& parts) { return parts[0].to(at::kFloat); }});
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def("bf16_linear(Tensor x, Tensor weight, Tensor? bias=None) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("bf16_linear", cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("bf16_linear", meta);
}
TORCH_LIBRARY_IMPL(halftone, Autograd, m) {
  m.impl("bf16_linear", autograd);
}

}  // namespace

at::Tensor ops::bf16_linear(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(kName, "").typed<decltype(cpu)>();
  return op.call(x, weight, bias);
}

}  // namespace halftone
