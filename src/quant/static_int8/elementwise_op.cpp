// halftone::int8_add, halftone::int8_mul and halftone::int8_lookup
#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "base/errors.h"
#include "graph/aten/aten_parallel_for.h"
#include "quant/static_int8/layout.h"
#include "quant/static_int8/operators.h"

namespace halftone::static_int8 {
namespace {

constexpr const char* kAddName = "halftone::int8_add";
constexpr const char* kMulName = "halftone::int8_mul";
constexpr const char* kLookupName = "halftone::int8_lookup";

using BinaryKernel = void (*)(const kernels::QuantizedOpsKernel&, const kernels::QuantizedPair&, uint8_t*,
                              int64_t, const kernels::QuantTarget&, ParallelFor&);

/// Both operands broadcast, in the layout of the one that is as large as the result.
struct Operands {
  at::Tensor a, b, out;
};

Operands broadcast(const char* name, const at::Tensor& a, const at::Tensor& b) {
  check_bytes(name, "a", a);
  check_bytes(name, "b", b);
  const std::vector<int64_t> sizes = at::infer_size(a.sizes(), b.sizes());
  const at::Tensor& whole = a.sizes() == sizes || b.sizes() != sizes ? a : b;
  Operands operands;
  operands.out = whole.sizes() == sizes ? at::empty_like(whole) : at::empty(sizes, whole.options());
  const auto laid_out = [&](const at::Tensor& tensor) {
    if (tensor.sizes() == sizes && tensor.strides() == operands.out.strides()) return tensor;
    at::Tensor copy = at::empty_like(operands.out);
    return copy.copy_(tensor);
  };
  operands.a = laid_out(a);
  operands.b = laid_out(b);
  return operands;
}

at::Tensor run_binary(const char* name, BinaryKernel kernel, const at::Tensor& a, const at::Tensor& b,
                      const kernels::QuantParams& a_params, const kernels::QuantParams& b_params,
                      const kernels::QuantTarget& target) {
  const Operands operands = broadcast(name, a, b);
  AtenParallelFor parallel_for;
  kernels::QuantizedPair pair;
  pair.a = operands.a.const_data_ptr<uint8_t>();
  pair.b = operands.b.const_data_ptr<uint8_t>();
  pair.a_params = a_params;
  pair.b_params = b_params;
  kernel(kernels::choose_quantized_ops(), pair, operands.out.data_ptr<uint8_t>(), operands.out.numel(),
         target, parallel_for);
  return operands.out;
}

at::Tensor add_cpu(const at::Tensor& a, const at::Tensor& b, double a_scale, int64_t a_zero_point,
                   double b_scale, int64_t b_zero_point, double out_scale, int64_t out_zero_point,
                   int64_t out_min, int64_t out_max) {
  return run_binary(kAddName, kernels::quantized_add, a, b, to_params(kAddName, a_scale, a_zero_point),
                    to_params(kAddName, b_scale, b_zero_point),
                    to_target(kAddName, out_scale, out_zero_point, out_min, out_max));
}

at::Tensor mul_cpu(const at::Tensor& a, const at::Tensor& b, double a_scale, int64_t a_zero_point,
                   double b_scale, int64_t b_zero_point, double out_scale, int64_t out_zero_point,
                   int64_t out_min, int64_t out_max) {
  return run_binary(kMulName, kernels::quantized_mul, a, b, to_params(kMulName, a_scale, a_zero_point),
                    to_params(kMulName, b_scale, b_zero_point),
                    to_target(kMulName, out_scale, out_zero_point, out_min, out_max));
}

at::Tensor binary_meta(const at::Tensor& a, const at::Tensor& b, double a_scale, int64_t a_zero_point,
                       double b_scale, int64_t b_zero_point, double out_scale, int64_t out_zero_point,
                       int64_t out_min, int64_t out_max) {
  constexpr const char* kName = "halftone::int8_add or int8_mul";
  check_bytes(kName, "a", a);
  check_bytes(kName, "b", b);
  to_params(kName, a_scale, a_zero_point);
  to_params(kName, b_scale, b_zero_point);
  to_target(kName, out_scale, out_zero_point, out_min, out_max);
  const std::vector<int64_t> sizes = at::infer_size(a.sizes(), b.sizes());
  if (a.sizes() == sizes) return at::empty_like(a);
  return b.sizes() == sizes ? at::empty_like(b) : at::empty(sizes, a.options());
}

void check_lookup(const at::Tensor& x, const at::Tensor& table) {
  if (x.element_size() != 1 || x.is_floating_point() || table.element_size() != 1 || table.dim() != 1 ||
      table.size(0) != 256)
    fail(ErrorCode::kInvalidArgument, "{}: takes bytes and a table of 256 bytes", kLookupName);
}

at::Tensor lookup_cpu(const at::Tensor& x, const at::Tensor& table) {
  check_lookup(x, table);
  const at::Tensor out = at::empty_like(x, x.options().dtype(table.scalar_type()));
  at::Tensor dense = x;
  if (x.strides() != out.strides()) dense = at::empty_like(x).copy_(x);
  const at::Tensor values = table.contiguous();
  AtenParallelFor parallel_for;
  kernels::quantized_lookup(kernels::choose_quantized_ops(),
                            static_cast<const uint8_t*>(dense.const_data_ptr()),
                            static_cast<uint8_t*>(out.data_ptr()), out.numel(),
                            static_cast<const uint8_t*>(values.const_data_ptr()), parallel_for);
  return out;
}

at::Tensor lookup_meta(const at::Tensor& x, const at::Tensor& table) {
  check_lookup(x, table);
  return at::empty_like(x, x.options().dtype(table.scalar_type()));
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def(
      "int8_add(Tensor a, Tensor b, *, float a_scale, int a_zero_point, float b_scale, int b_zero_point, "
      "float out_scale, int out_zero_point, int out_min=0, int out_max=255) -> Tensor");
  m.def(
      "int8_mul(Tensor a, Tensor b, *, float a_scale, int a_zero_point, float b_scale, int b_zero_point, "
      "float out_scale, int out_zero_point, int out_min=0, int out_max=255) -> Tensor");
  m.def("int8_lookup(Tensor x, Tensor table) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("int8_add", add_cpu);
  m.impl("int8_mul", mul_cpu);
  m.impl("int8_lookup", lookup_cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("int8_add", binary_meta);
  m.impl("int8_mul", binary_meta);
  m.impl("int8_lookup", lookup_meta);
}

}  // namespace

void link_elementwise_operators() {}

}  // namespace halftone::static_int8
