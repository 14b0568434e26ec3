#include "compiler/executor/aten_step.h"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>

#include "base/errors.h"
#include "graph/aten/dtype_text.h"
#include "graph/operators/operands.h"

namespace halftone::compiler {

namespace {

c10::IValue value_of(const StepOperand& operand, const Frame& frame) {
  switch (operand.kind) {
    case StepOperand::Kind::kConstant:
      return operand.constant;
    case StepOperand::Kind::kSlot:
      return tensor_at(operand.slot, frame);
    case StepOperand::Kind::kList:
      break;
  }
  std::vector<c10::IValue> items;
  items.reserve(operand.items.size());
  for (const StepOperand& item : operand.items) items.push_back(value_of(item, frame));
  return list_to_ivalue(std::move(items), operand.type);
}

/// Strides of dimensions with one element say nothing.
bool same_layout(const at::Tensor& tensor, const Slot& slot) {
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) > 1 && tensor.stride(i) != slot.meta.stride(i)) return false;
  }
  return true;
}

/// Some operators give back an operand, or a view of it, without saying so; its memory may be used again
/// before the result is.
bool may_share_memory(const at::Tensor& result, const c10::IValue& operand) {
  if (operand.isTensor()) {
    const at::Tensor& tensor = operand.toTensor();  // weights in mkldnn's layout have no storage
    return tensor.defined() && tensor.has_storage() && result.is_alias_of(tensor);
  }
  if (!operand.isTensorList()) return false;
  for (const at::Tensor& each : operand.toTensorVector()) {
    if (result.is_alias_of(each)) return true;
  }
  return false;
}

/// Later steps rely on what was planned, which the graph may have declared wrongly.
void require_planned(const at::Tensor& result, const Slot& slot) {
  if (!result.defined() || !result.device().is_cpu() || result.layout() != at::kStrided)
    fail(ErrorCode::kInvalidArgument, "gave no dense tensor on the CPU");
  if (result.sizes() == slot.sizes() && result.scalar_type() == slot.dtype()) return;
  fail(ErrorCode::kInvalidArgument, "gave {} {} where {} {} is declared", dtype_text(result.scalar_type()),
       c10::str(result.sizes()), dtype_text(slot.dtype()), c10::str(slot.sizes()));
}

at::Tensor settle(at::Tensor result, const Slot& slot, const std::vector<c10::IValue>& operands) {
  require_planned(result, slot);
  bool copy = !same_layout(result, slot) || result.is_conj() || result.is_neg();
  for (const c10::IValue& operand : operands) copy = copy || may_share_memory(result, operand);
  if (!copy) return result;
  at::Tensor fresh = at::empty_strided(slot.sizes(), slot.strides(), result.options());
  return fresh.copy_(result);
}

}  // namespace

at::Tensor tensor_at(const Slot& slot, const Frame& frame) {
  const auto index = static_cast<size_t>(slot.buffer);
  const c10::IValue& whole = frame.tensors[index];
  if (!whole.isTensor()) {
    std::byte* start = frame.pointers[index] + slot.operand().byte_offset;
    return at::from_blob(start, slot.sizes(), slot.strides(), at::TensorOptions(slot.dtype()));
  }
  const at::Tensor& tensor = whole.toTensor();
  if (slot.meta.storage_offset() == 0 && tensor.sizes() == slot.sizes() &&
      tensor.strides() == slot.strides()) {
    return tensor;
  }
  return tensor.as_strided(slot.sizes(), slot.strides(),
                           tensor.storage_offset() + slot.meta.storage_offset());
}

namespace {

/// An operator that writes in place may still allocate.
void require_same_memory(const at::Tensor& result, const Slot& slot, const Frame& frame) {
  require_planned(result, slot);
  if (result.numel() > 0 && result.const_data_ptr() != frame.at<const void>(slot.operand()))
    fail(ErrorCode::kUnsupported, "moved the memory that it writes to");
}

}  // namespace

void AtenStep::run(Frame& frame) const {
  std::vector<c10::IValue> operands;
  operands.reserve(operands_.size());
  for (const StepOperand& operand : operands_) operands.push_back(value_of(operand, frame));
  std::vector<c10::IValue> stack = operands;
  if (guard_) guard_(stack);
  op_.callBoxed(stack);
  if (stack.size() != outputs_.size()) {
    fail(ErrorCode::kInternal, "gave {} values where {} were planned", stack.size(), outputs_.size());
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Slot& slot = outputs_[i].slot;
    if (!slot.meta.defined()) continue;
    if (outputs_[i].in_place) {
      require_same_memory(stack[i].toTensor(), slot, frame);
      continue;
    }
    at::Tensor result = settle(stack[i].toTensor(), slot, operands);
    frame.pointers[static_cast<size_t>(slot.buffer)] = static_cast<std::byte*>(result.data_ptr());
    frame.tensors[static_cast<size_t>(slot.buffer)] = std::move(result);
  }
}

}  // namespace halftone::compiler
