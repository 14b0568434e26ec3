// halftone::int8_linear
#include <torch/library.h>

#include "base/errors.h"
#include "kernels/int8_linear/int8_linear.h"
#include "quant/weight/arithmetic/affine.h"
#include "quant/weight/differentiable_linear.h"
#include "quant/weight/linear_call.h"
#include "quant/weight/meta_linear.h"
#include "quant/weight/ops.h"
#include "quant/weight/pack_weights.h"

namespace halftone {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
constexpr const char* kName = "halftone::int8_linear";

void check_arguments(const at::Tensor& weight, const at::Tensor& scale, int64_t weight_bits) {
  check_matrix(kName, weight, at::kChar);
  if (weight_bits != 7 && weight_bits != 8) {
    fail(ErrorCode::kInvalidArgument, "{}: weight_bits is {}; it takes 8 or 7", kName, weight_bits);
  }
  if (!has_symbols(weight)) check_part(kName, "scale", scale, at::kFloat, {weight.size(0)});
}

at::Tensor cpu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
               const OptionalTensor& bias, int64_t weight_bits, bool symmetric_activations) {
  check_arguments(weight, scale, weight_bits);
  const int64_t n = weight.size(0), k = weight.size(1);
  LinearCall call(kName, x, n, k, bias);
  const kernels::Int8LinearProblem problem{call.m(), n, k, static_cast<int>(weight_bits)};
  const kernels::Int8LinearKernel& kernel = kernels::choose_int8_linear(problem);
  const at::Tensor block = packed_int8(weight, scale, problem.weight_bits, kernel.tile);
  kernels::Int8LinearArgs args;
  args.x = call.x();
  args.x_stride = call.x_stride();
  args.x_format = symmetric_activations ? kernels::RowFormat::kS8 : kernels::RowFormat::kU8;
  args.weights = block.const_data_ptr();
  args.epilogue = call.epilogue();
  args.workspace_bytes = kernels::int8_linear_workspace_bytes(kernel, problem, call.parallel_for().threads(),
                                                              args.epilogue.type);
  args.workspace = call.workspace(args.workspace_bytes);
  kernels::int8_linear(kernel, problem, args, call.parallel_for());
  return call.result();
}

at::Tensor meta(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                const OptionalTensor& bias, int64_t weight_bits, bool symmetric_activations) {
  check_arguments(weight, scale, weight_bits);
  return meta_linear(kName, x, weight.sym_size(0), weight.sym_size(1), bias);
}

at::Tensor autograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                    const OptionalTensor& bias, int64_t weight_bits, bool symmetric_activations) {
  return differentiable_linear(
      x, bias,
      {kName,
       {weight, scale},
       [&](const at::Tensor& input, const OptionalTensor& b) {
         return ops::int8_linear(input, weight, scale, b, weight_bits, symmetric_activations);
       },
       [](const std::vector<at::Tensor>& parts) { return dequantize_affine(parts[0], parts[1], {}); }});
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def(
      "int8_linear(Tensor x, Tensor weight, Tensor scale, Tensor? bias=None, *, int weight_bits=8, "
      "bool symmetric_activations=False) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("int8_linear", cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("int8_linear", meta);
}
TORCH_LIBRARY_IMPL(halftone, Autograd, m) {
  m.impl("int8_linear", autograd);
}

}  // namespace

at::Tensor ops::int8_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                            const OptionalTensor& bias, int64_t weight_bits, bool symmetric_activations) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(kName, "").typed<decltype(cpu)>();
  return op.call(x, weight, scale, bias, weight_bits, symmetric_activations);
}

}  // namespace halftone
