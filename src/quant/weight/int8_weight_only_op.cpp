// halftone::int8_weight_only_linear; and halftone::restore_int8_weight, the weight of a convolution that is
// stored in the same format. The convolution itself stays one of ATen's, in float; compiled models restore
// once, when they are compiled.
#include <torch/library.h>

#include "base/errors.h"
#include "graph/aten/dtype_text.h"
#include "quant/weight/arithmetic/affine.h"
#include "quant/weight/differentiable_linear.h"
#include "quant/weight/float_kernels.h"
#include "quant/weight/meta_linear.h"
#include "quant/weight/ops.h"

namespace halftone {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
constexpr const char* kName = "halftone::int8_weight_only_linear";

void check_parts(const at::Tensor& weight, const at::Tensor& scale) {
  check_matrix(kName, weight, at::kChar);
  if (!has_symbols(weight)) check_part(kName, "scale", scale, at::kFloat, {weight.size(0)});
}

at::Tensor cpu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
               const OptionalTensor& bias) {
  check_parts(weight, scale);
  LinearCall call(kName, x, weight.size(0), weight.size(1), bias);
  return run_ready(call, int8_weight_only_linear_format().ready({weight, scale}, {}, problem_of(call)));
}

at::Tensor meta(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                const OptionalTensor& bias) {
  check_parts(weight, scale);
  return meta_linear(kName, x, weight.sym_size(0), weight.sym_size(1), bias);
}

at::Tensor autograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                    const OptionalTensor& bias) {
  return differentiable_linear(
      x, bias,
      {kName,
       {weight, scale},
       [&](const at::Tensor& input, const OptionalTensor& b) {
         return ops::int8_weight_only_linear(input, weight, scale, b);
       },
       [](const std::vector<at::Tensor>& parts) { return dequantize_affine(parts[0], parts[1], {}); }});
}

constexpr const char* kRestoreName = "halftone::restore_int8_weight";

at::Tensor restore(const at::Tensor& weight, const at::Tensor& scale, std::optional<c10::ScalarType> dtype) {
  if (weight.dim() < 2)
    fail(ErrorCode::kInvalidArgument, "{}: a weight has two dimensions or more, not {}", kRestoreName,
         weight.dim());
  check_part(kRestoreName, "weight", weight, at::kChar, weight.sizes());
  check_part(kRestoreName, "scale", scale, at::kFloat, {weight.size(0)});
  const c10::ScalarType type = dtype.value_or(at::kFloat);
  if (!c10::isFloatingType(type))
    fail(ErrorCode::kInvalidArgument, "{}: dtype must be floating-point, not {}", kRestoreName,
         dtype_text(type));
  std::vector<int64_t> per_output(static_cast<size_t>(weight.dim()), 1);
  per_output[0] = weight.size(0);
  return weight.to(at::kFloat).mul(scale.view(per_output)).to(type);
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def("int8_weight_only_linear(Tensor x, Tensor weight, Tensor scale, Tensor? bias=None) -> Tensor");
  m.def("restore_int8_weight(Tensor weight, Tensor scale, *, ScalarType? dtype=None) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CompositeExplicitAutograd, m) {
  m.impl("restore_int8_weight", restore);
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("int8_weight_only_linear", cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("int8_weight_only_linear", meta);
}
TORCH_LIBRARY_IMPL(halftone, Autograd, m) {
  m.impl("int8_weight_only_linear", autograd);
}

}  // namespace

at::Tensor ops::int8_weight_only_linear(const at::Tensor& x, const at::Tensor& weight,
                                        const at::Tensor& scale, const OptionalTensor& bias) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(kName, "").typed<decltype(cpu)>();
  return op.call(x, weight, scale, bias);
}

}  // namespace halftone
