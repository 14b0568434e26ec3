#include "autograd/decompositions/op_math.h"

#include <ATen/OpMathType.h>
#include <ATen/ops/_to_copy.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/scalar_tensor.h>

namespace halftone {

at::Tensor cast(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.scalar_type() == type ? tensor : at::_to_copy(tensor, type);
}

at::Tensor number_like(const at::Tensor& like, const at::Scalar& value) {
  return at::scalar_tensor(value, at::TensorOptions().dtype(like.dtype()).device(like.device()));
}

at::Tensor given(const std::optional<at::Tensor>& tensor) {
  return tensor.value_or(at::Tensor());
}

at::Tensor dense(const at::Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : at::clone(tensor, at::MemoryFormat::Contiguous);
}

c10::List<std::optional<at::Tensor>> first_dimension(const at::Tensor& indices) {
  c10::List<std::optional<at::Tensor>> list;
  list.push_back(indices);
  return list;
}

at::ScalarType op_math_type(at::ScalarType type) {
  return at::toOpMathType(type);
}

void OpMath::see(const at::Tensor& operand) {
  if (operand.defined()) seen_ = at::native::update_result_type_state(operand, seen_);
}

at::ScalarType OpMath::type() const {
  return known_ ? *known_ : at::native::result_type(seen_);
}

}  // namespace halftone
