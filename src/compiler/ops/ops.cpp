#include "compiler/ops/ops.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "compiler/ops/kernels.h"

namespace halftone {
namespace {

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def("quantize_rows(Tensor x, *, bool symmetric) -> (Tensor q, Tensor scale, Tensor zero_point)");
  m.def(
      "norm(Tensor x, Tensor? residual, Tensor? gamma, Tensor? beta, *, str kind, float eps, bool symmetric)"
      " -> (Tensor y, Tensor sum, Tensor q, Tensor scale, Tensor zero_point)");
  m.def("attention(Tensor q, Tensor k, Tensor v, Tensor? mask, *, bool causal, float scale) -> Tensor");
  m.def(
      "fused_linear(Tensor x, Tensor? x_scale, Tensor? x_zero_point, Tensor[] weight, Tensor? bias, Tensor? "
      "residual, *,"
      " str format, int[] attributes, str activation, bool symmetric)"
      " -> (Tensor y, Tensor q, Tensor scale, Tensor zero_point)");
  m.def(
      "conv(Tensor x, Tensor weight, Tensor? bias, Tensor? residual, *, int[] stride, int[] padding, int[] "
      "dilation,"
      " bool transposed, int[] output_padding, int groups, str activation, float lo=0, float hi=0) -> "
      "Tensor");
}

TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("quantize_rows", ops::quantize_rows_cpu);
  m.impl("norm", ops::norm_cpu);
  m.impl("attention", ops::attention_cpu);
  m.impl("fused_linear", ops::fused_linear_cpu);
  m.impl("conv", ops::conv_cpu);
}

TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("quantize_rows", ops::quantize_rows_meta);
  m.impl("norm", ops::norm_meta);
  m.impl("attention", ops::attention_meta);
  m.impl("fused_linear", ops::fused_linear_meta);
  m.impl("conv", ops::conv_meta);
}

template <typename Function>
auto typed(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

}  // namespace

void register_fused_operators() {}

namespace ops {

QuantizedRows quantize_rows(const at::Tensor& x, bool symmetric) {
  static const auto op = typed<decltype(quantize_rows_cpu)>("halftone::quantize_rows");
  auto [q, scale, zero_point] = op.call(x, symmetric);
  return {q, scale, zero_point};
}

NormResult norm(const at::Tensor& x, const OptionalTensor& residual, const OptionalTensor& gamma,
                const OptionalTensor& beta, std::string_view kind, double eps, bool symmetric) {
  static const auto op = typed<decltype(norm_cpu)>("halftone::norm");
  return op.call(x, residual, gamma, beta, kind, eps, symmetric);
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const OptionalTensor& mask, bool causal, double scale) {
  static const auto op = typed<decltype(attention_cpu)>("halftone::attention");
  return op.call(q, k, v, mask, causal, scale);
}

FusedLinearResult fused_linear(const FusedLinear& call) {
  static const auto op = typed<decltype(fused_linear_cpu)>("halftone::fused_linear");
  return op.call(call.x, call.x_scale, call.x_zero_point, call.weight, call.bias, call.residual, call.format,
                 call.attributes, call.activation, call.symmetric);
}

at::Tensor conv(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                const OptionalTensor& residual, const ConvNumbers& how) {
  static const auto op = typed<decltype(conv_cpu)>("halftone::conv");
  return op.call(x, weight, bias, residual, how.stride, how.padding, how.dilation, how.transposed,
                 how.output_padding, how.groups, how.activation, how.lo, how.hi);
}

}  // namespace ops
}  // namespace halftone
