// Which kernel an operator has for quantized tensors, and the refusal of all others.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

#include "base/errors.h"
#include "quant/module/dispatch_keys.h"
#include "quant/module/kernels.h"
#include "quant/module/layer_weight.h"

namespace halftone {
namespace {

/// The first quantized tensor in a value, also inside lists.
const QuantizedMeta* find_meta(const c10::IValue& value) {
  if (value.isTensor()) return try_meta(value.toTensor());
  if (!value.isList()) return nullptr;
  for (const c10::IValue& item : value.toListRef()) {
    if (const QuantizedMeta* meta = find_meta(item)) return meta;
  }
  return nullptr;
}

// Operators that read metadata only.
constexpr const char* kOnStandIn[] = {
    "size.int",
    "sym_size.int",
    "stride.int",
    "sym_stride.int",
    "sym_numel",
    "sym_storage_offset",
    "is_complex",
    "is_floating_point",
    "is_signed",
    "is_same_size",
    "is_conj",
    "is_neg",
    "_is_zerotensor",
    "empty_like",
    "zeros_like",
    "ones_like",
    "full_like",
    "rand_like",
    "randn_like",
    "new_empty",
    "new_zeros",
    "new_ones",
    "new_full",
    "new_empty_strided",
    "result_type.Tensor",
    "result_type.Scalar",
    "result_type.Scalar_Tensor",
};

}  // namespace

namespace weight_kernels {

void on_stand_in(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  for (size_t i = stack->size() - count; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    if (!value.isTensor() || !try_meta(value.toTensor())) continue;
    const Tensor& tensor = value.toTensor();
    value = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.scalar_type());
  }
  op.callBoxed(stack);
}

void refuse(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const std::string name = c10::toString(op.operator_name());
  const size_t count = op.schema().arguments().size();
  for (size_t i = stack->size() - count; i < stack->size(); ++i) {
    if (const QuantizedMeta* meta = find_meta((*stack)[i])) fail_unsupported(*meta, name);
  }
  fail(ErrorCode::kInternal, "{}: called for quantized tensors without one", name);
}

}  // namespace weight_kernels

void link_kernels() {}

}  // namespace halftone

namespace weight_kernels = halftone::weight_kernels;

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericWrapper, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&weight_kernels::refuse>());
}

TORCH_LIBRARY_IMPL(_, PrivateUse3, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&weight_kernels::refuse>());
}

TORCH_LIBRARY_IMPL(aten, TESTING_ONLY_GenericWrapper, library) {
  library.impl("linear", TORCH_FN(weight_kernels::linear));
  library.impl("addmm", TORCH_FN(weight_kernels::addmm));
  library.impl("mm", TORCH_FN(weight_kernels::mm));
  library.impl("matmul", TORCH_FN(weight_kernels::matmul));
  library.impl("embedding", TORCH_FN(weight_kernels::embedding));
  for (const char* name : {"t", "numpy_T", "mT"}) library.impl(name, TORCH_FN(weight_kernels::transpose_all));
  for (const char* name : {"transpose.int", "swapaxes", "swapdims"}) {
    library.impl(name, TORCH_FN(weight_kernels::transpose));
  }
  library.impl("permute", TORCH_FN(weight_kernels::permute));
  library.impl("slice.Tensor", TORCH_FN(weight_kernels::slice));
  library.impl("narrow", TORCH_FN(weight_kernels::narrow));
  for (const char* name : {"chunk", "unsafe_chunk"}) library.impl(name, TORCH_FN(weight_kernels::chunk));
  for (const char* name : {"split.Tensor", "unsafe_split.Tensor"})
    library.impl(name, TORCH_FN(weight_kernels::split));
  for (const char* name : {"split.sizes", "split_with_sizes", "unsafe_split_with_sizes"}) {
    library.impl(name, TORCH_FN(weight_kernels::split_with_sizes));
  }
  library.impl("detach", TORCH_FN(weight_kernels::detach));
  library.impl("alias", TORCH_FN(weight_kernels::alias));
  library.impl("clone", TORCH_FN(weight_kernels::clone));
  library.impl("dequantize.self", TORCH_FN(weight_kernels::dequantize));
  library.impl("to.dtype", TORCH_FN(weight_kernels::to_dtype));
  library.impl("to.device", TORCH_FN(weight_kernels::to_device));
  library.impl("to.dtype_layout", TORCH_FN(weight_kernels::to_dtype_layout));
  library.impl("_to_copy", TORCH_FN(weight_kernels::to_copy));
  library.impl("to.other", TORCH_FN(weight_kernels::to_other));
  library.impl("type_as", TORCH_FN(weight_kernels::type_as));
  library.impl("_has_compatible_shallow_copy_type",
               TORCH_FN(weight_kernels::has_compatible_shallow_copy_type));
  for (const char* name : halftone::kOnStandIn) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&weight_kernels::on_stand_in>());
  }
}
