// halftone::int4_linear
#include <torch/library.h>

#include <algorithm>

#include "base/errors.h"
#include "kernels/common/int4_weights.h"
#include "quant/weight/arithmetic/affine.h"
#include "quant/weight/arithmetic/bits.h"
#include "quant/weight/differentiable_linear.h"
#include "quant/weight/float_kernels.h"
#include "quant/weight/meta_linear.h"
#include "quant/weight/ops.h"

namespace halftone {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
constexpr const char* kName = "halftone::int4_linear";

at::Tensor or_undefined(const OptionalTensor& tensor) {
  return tensor.value_or(at::Tensor());
}

void check_arguments(const at::Tensor& weight, const at::Tensor& scale, const at::Tensor& zeros,
                     int64_t group_size, int64_t in_features) {
  check_matrix(kName, weight, at::kByte);
  const c10::SymInt inputs = ops::int4_inputs(kName, weight, in_features);
  if (has_symbols(weight)) return;
  const int64_t n = weight.size(0), k = inputs.expect_int();
  const int group = static_cast<int>(std::clamp<int64_t>(group_size, 0, 1024));
  if (const char* reason = kernels::refuse_int4_group(group)) {
    fail(ErrorCode::kInvalidArgument, "{}: group size {}: {}", kName, group_size, reason);
  }
  const int64_t groups = kernels::int4_whole_groups(k, group) / group;
  check_part(kName, "scale", scale, at::kFloat, {n, groups});
  if (!zeros.defined()) return;
  const bool floats = zeros.scalar_type() == at::kFloat;
  check_part(kName, "zero_point", zeros, floats ? at::kFloat : at::kChar, {n, groups});
  if (floats && k % group != 0) {
    fail(ErrorCode::kInvalidArgument,
         "{}: zero_point is of float32, and {} inputs are not whole groups of {}", kName, k, group);
  }
}

at::Tensor cpu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
               const OptionalTensor& zero_point, const OptionalTensor& bias, int64_t group_size,
               bool quantize_activations, int64_t in_features) {
  const at::Tensor zeros = or_undefined(zero_point);
  check_arguments(weight, scale, zeros, group_size, in_features);
  const int64_t n = weight.size(0), k = ops::int4_inputs(kName, weight, in_features).expect_int();
  LinearCall call(kName, x, n, k, bias);
  return run_ready(
      call, int4_linear_format().ready({weight, scale, zeros},
                                       {group_size, quantize_activations, in_features}, problem_of(call)));
}

at::Tensor meta(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                const OptionalTensor& zero_point, const OptionalTensor& bias, int64_t group_size,
                bool quantize_activations, int64_t in_features) {
  check_arguments(weight, scale, or_undefined(zero_point), group_size, in_features);
  return meta_linear(kName, x, weight.sym_size(0), ops::int4_inputs(kName, weight, in_features), bias);
}

at::Tensor autograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                    const OptionalTensor& zero_point, const OptionalTensor& bias, int64_t group_size,
                    bool quantize_activations, int64_t in_features) {
  return differentiable_linear(x, bias,
                               {kName,
                                {weight, scale, or_undefined(zero_point)},
                                [&](const at::Tensor& input, const OptionalTensor& b) {
                                  return ops::int4_linear(input, weight, scale, zero_point, b, group_size,
                                                          quantize_activations, in_features);
                                },
                                [group_size, in_features](const std::vector<at::Tensor>& parts) {
                                  const c10::SymInt k = ops::int4_inputs(kName, parts[0], in_features);
                                  return dequantize_affine(unpack_bits(parts[0], 4, k), parts[1], parts[2],
                                                           group_size);
                                }});
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def(
      "int4_linear(Tensor x, Tensor weight, Tensor scale, Tensor? zero_point=None, Tensor? bias=None, *, int "
      "group_size=32, "
      "bool quantize_activations=False, int in_features=0) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("int4_linear", cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("int4_linear", meta);
}
TORCH_LIBRARY_IMPL(halftone, Autograd, m) {
  m.impl("int4_linear", autograd);
}

}  // namespace

at::Tensor ops::int4_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                            const OptionalTensor& zero_point, const OptionalTensor& bias, int64_t group_size,
                            bool quantize_activations, int64_t in_features) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(kName, "").typed<decltype(cpu)>();
  return op.call(x, weight, scale, zero_point, bias, group_size, quantize_activations, in_features);
}

c10::SymInt ops::int4_inputs(const char* name, const at::Tensor& weight, int64_t in_features) {
  const c10::SymInt even = weight.sym_size(1) * 2;
  if (in_features == 0) return even;
  if (in_features < 0 || (even != in_features && even != c10::SymInt(in_features) + 1)) {
    fail(ErrorCode::kInvalidArgument, "{}: in_features is {}, which is not that of its weight", name,
         in_features);
  }
  return in_features;
}

}  // namespace halftone
