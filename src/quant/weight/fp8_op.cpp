// halftone::fp8_linear
#include <torch/library.h>

#include "quant/weight/arithmetic/float8.h"
#include "quant/weight/differentiable_linear.h"
#include "quant/weight/float_kernels.h"
#include "quant/weight/meta_linear.h"
#include "quant/weight/ops.h"

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
  LinearCall call(kName, x, weight.size(0), weight.size(1), bias);
  // One scale for all rows of x: they are rounded here, because the kernel's own way is row by row.
  const bool round_first = quantize_activations && per_tensor;
  const bool by_row = quantize_activations && !per_tensor;
  const ReadyLinear ready =
      fp8_linear_format().ready({weight, scale}, {by_row, per_tensor}, problem_of(call));
  return run_ready(call, ready, round_first ? round_to_float8(call.rows()) : at::Tensor());
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
