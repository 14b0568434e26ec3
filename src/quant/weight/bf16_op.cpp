// halftone::bf16_linear
#include <torch/library.h>

#include "quant/weight/differentiable_linear.h"
#include "quant/weight/float_kernels.h"
#include "quant/weight/meta_linear.h"
#include "quant/weight/ops.h"

namespace halftone {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
constexpr const char* kName = "halftone::bf16_linear";

at::Tensor cpu(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias) {
  check_matrix(kName, weight, at::kBFloat16);
  LinearCall call(kName, x, weight.size(0), weight.size(1), bias);
  return run_ready(call, bf16_linear_format().ready({weight}, {}, problem_of(call)));
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
