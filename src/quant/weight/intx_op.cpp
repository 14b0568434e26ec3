// halftone::intx_linear, run by the nearest kernel:
//   up to 4 bits in groups of 32, 64, 128 or 256   int4_weight_only_linear
//   one group a channel, q - zero_point in 8 bits  int8_weight_only_linear
//   everything else                                fp32_linear on the restored floats, which takes 4 bytes
//                                                  a weight in memory
#include <torch/library.h>

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
constexpr const char* kName = "halftone::intx_linear";

// Bytes mean something else for each width, so each has layouts of its own.
constexpr std::string_view kAsInt4[] = {"", "", "int2_as_int4", "int3_as_int4", "int4_as_int4"};
constexpr std::string_view kAsInt8[] = {"",
                                        "",
                                        "int2_as_int8",
                                        "int3_as_int8",
                                        "int4_as_int8",
                                        "int5_as_int8",
                                        "int6_as_int8",
                                        "int7_as_int8",
                                        "int8_as_int8"};
constexpr std::string_view kAsFp32[] = {"",
                                        "",
                                        "int2_as_fp32",
                                        "int3_as_fp32",
                                        "int4_as_fp32",
                                        "int5_as_fp32",
                                        "int6_as_fp32",
                                        "int7_as_fp32",
                                        "int8_as_fp32"};

void check_arguments(const at::Tensor& weight, const at::Tensor& scale, const at::Tensor& zeros, int64_t bits,
                     int64_t k, int64_t group_size) {
  if (bits < 2 || bits > 8) fail(ErrorCode::kInvalidArgument, "{}: bits is {}; it takes 2 to 8", kName, bits);
  if (k < 0 || k > INT64_MAX / 8 || group_size < 0 || group_size > INT64_MAX / 8) {
    fail(ErrorCode::kInvalidArgument, "{}: groups of {} cannot be made of {} inputs", kName, group_size, k);
  }
  check_matrix(kName, weight, at::kByte);
  if (has_symbols(weight)) return;
  const int64_t n = weight.size(0), groups = affine_groups(k, group_size);
  check_part(kName, "weight", weight, at::kByte, {n, (k * bits + 7) / 8});
  check_part(kName, "scale", scale, at::kFloat, {n, groups});
  if (zeros.defined()) check_part(kName, "zero_point", zeros, at::kChar, {n, groups});
}

at::Tensor cpu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
               const OptionalTensor& zero_point, const OptionalTensor& bias, int64_t bits,
               int64_t in_features, int64_t group_size) {
  const at::Tensor zeros = zero_point.value_or(at::Tensor());
  check_arguments(weight, scale, zeros, bits, in_features, group_size);
  LinearCall call(kName, x, weight.size(0), in_features, bias);
  const auto integers = [&](int64_t first, int64_t count) {
    return unpack_bits(weight.narrow(0, first, count), static_cast<int>(bits), in_features);
  };
  const std::vector<at::Tensor> parts{weight, scale, zeros};
  const LinearProblem problem = problem_of(call);
  if (bits <= 4 && group_size <= 256 && kernels::refuse_int4_group(static_cast<int>(group_size)) == nullptr) {
    return run_ready(
        call, ready_int4_weight_only({kAsInt4[bits], parts, call.n(), call.k(), integers, scale, zeros},
                                     static_cast<int>(group_size), problem));
  }
  if (scale.size(1) == 1 && (!zeros.defined() || bits < 8)) {
    // Both are in [-64, 63] at most, so their difference fits.
    const auto centred = [&](int64_t first, int64_t count) {
      const at::Tensor rows = integers(first, count);
      return zeros.defined() ? rows.sub(zeros.narrow(0, first, count)) : rows;
    };
    return run_ready(
        call, ready_int8_weight_only({kAsInt8[bits], parts, call.n(), call.k(), centred, scale}, problem));
  }
  const auto floats = [&](int64_t first, int64_t count) {
    return dequantize_affine(integers(first, count), scale.narrow(0, first, count),
                             zeros.defined() ? zeros.narrow(0, first, count) : zeros, group_size);
  };
  return run_ready(call, ready_fp32({kAsFp32[bits], parts, call.n(), call.k(), floats}, problem));
}

at::Tensor meta(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                const OptionalTensor& zero_point, const OptionalTensor& bias, int64_t bits,
                int64_t in_features, int64_t group_size) {
  check_arguments(weight, scale, zero_point.value_or(at::Tensor()), bits, in_features, group_size);
  return meta_linear(kName, x, weight.sym_size(0), in_features, bias);
}

at::Tensor autograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                    const OptionalTensor& zero_point, const OptionalTensor& bias, int64_t bits,
                    int64_t in_features, int64_t group_size) {
  return differentiable_linear(
      x, bias,
      {kName,
       {weight, scale, zero_point.value_or(at::Tensor())},
       [&](const at::Tensor& input, const OptionalTensor& b) {
         return ops::intx_linear(input, weight, scale, zero_point, b, bits, in_features, group_size);
       },
       [bits, in_features, group_size](const std::vector<at::Tensor>& parts) {
         return dequantize_affine(unpack_bits(parts[0], static_cast<int>(bits), in_features), parts[1],
                                  parts[2], group_size);
       }});
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def(
      "intx_linear(Tensor x, Tensor weight, Tensor scale, Tensor? zero_point=None, Tensor? bias=None, *, int "
      "bits, "
      "int in_features, int group_size) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("intx_linear", cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("intx_linear", meta);
}
TORCH_LIBRARY_IMPL(halftone, Autograd, m) {
  m.impl("intx_linear", autograd);
}

}  // namespace

at::Tensor ops::intx_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                            const OptionalTensor& zero_point, const OptionalTensor& bias, int64_t bits,
                            int64_t in_features, int64_t group_size) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(kName, "").typed<decltype(cpu)>();
  return op.call(x, weight, scale, zero_point, bias, bits, in_features, group_size);
}

}  // namespace halftone
