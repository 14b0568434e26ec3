// Planner: reading the arguments of nodes.
#include <ATen/core/dispatch/Dispatcher.h>

#include "base/errors.h"
#include "compiler/executor/planner.h"
#include "graph/operators/operands.h"

namespace halftone::compiler {

bool wants_tensor(const c10::TypePtr& type) {
  if (!type) return false;
  if (const auto optional = type->cast<c10::OptionalType>()) return wants_tensor(optional->getElementType());
  return type->kind() == c10::TypeKind::TensorType;
}

namespace {

bool is_constant(const StepOperand& operand) {
  return operand.kind == StepOperand::Kind::kConstant;
}

}  // namespace

const Slot* Planner::tensor(const Node& node, std::string_view name) const {
  const Argument* argument = node.try_input(name);
  const Value* value = argument ? argument->value() : nullptr;
  return value ? planned(value).slot() : nullptr;
}

std::vector<Slot> Planner::tensor_list(const Node& node, std::string_view name) const {
  std::vector<Slot> slots;
  const Argument* argument = node.try_input(name);
  if (!argument || !argument->list()) return slots;
  for (const Argument& item : *argument->list()) {
    const Slot* slot = item.value() ? planned(item.value()).slot() : nullptr;
    if (slot) slots.push_back(*slot);
  }
  return slots;
}

c10::IValue Planner::constant(const Node& node, std::string_view name) const {
  const c10::Argument* expected = try_schema_argument(node, name);
  if (!expected) fail(ErrorCode::kInternal, "{} has no argument {}", node.target(), name);
  const Argument* given = node.try_input(name);
  if (!given) return expected->default_value() ? *expected->default_value() : c10::IValue();
  return operand_of(*given, expected->type()).constant;
}

at::Tensor Planner::weight(const Slot& slot) const {
  const Buffer& buffer = plan_->buffers[static_cast<size_t>(slot.buffer)];
  if (buffer.kind != Buffer::Kind::kConstant) return {};
  const at::Tensor& whole = buffer.constant;
  if (slot.meta.storage_offset() == 0 && whole.sizes() == slot.sizes() && whole.strides() == slot.strides())
    return whole;
  return whole.as_strided(slot.sizes(), slot.strides(), whole.storage_offset() + slot.meta.storage_offset());
}

StepOperand Planner::operand_of(const Argument& argument, const c10::TypePtr& type) const {
  if (const Value* value = argument.value()) {
    const Planned& known = planned(value);
    if (const Slot* slot = known.slot()) return {.kind = StepOperand::Kind::kSlot, .slot = *slot};
    if (const std::vector<Slot>* list = known.list()) {
      StepOperand operand{.kind = StepOperand::Kind::kList, .type = type};
      for (const Slot& slot : *list)
        operand.items.push_back({.kind = StepOperand::Kind::kSlot, .slot = slot});
      return operand;
    }
    const c10::IValue* number = known.number();
    if (!number) fail(ErrorCode::kInternal, "%{} has no place in the plan", value->name());
    return {.constant = wants_tensor(type) && !number->isNone() ? number_to_tensor(*number) : *number};
  }
  const Argument::List* list = argument.list();
  if (!list) return {.constant = constant_to_ivalue(argument, type)};
  StepOperand operand{.kind = StepOperand::Kind::kList, .type = type};
  bool all_constant = true;
  for (const Argument& item : *list) {
    operand.items.push_back(operand_of(item, element_type(type)));
    all_constant = all_constant && is_constant(operand.items.back());
  }
  if (!all_constant) return operand;
  std::vector<c10::IValue> items;
  for (StepOperand& item : operand.items) items.push_back(std::move(item.constant));
  return {.constant = list_to_ivalue(std::move(items), type)};
}

std::vector<StepOperand> Planner::schema_operands(const Node& node) const {
  return halftone::schema_operands<StepOperand>(
      node, [&](const Argument& given, const c10::TypePtr& type) { return operand_of(given, type); },
      [](const c10::IValue& constant, const c10::TypePtr&) { return StepOperand{.constant = constant}; });
}

std::vector<c10::IValue> Planner::meta_stack(const std::vector<StepOperand>& operands) const {
  std::vector<c10::IValue> stack;
  for (const StepOperand& operand : operands) {
    if (operand.kind == StepOperand::Kind::kSlot) {
      stack.emplace_back(operand.slot.meta);
    } else if (operand.kind == StepOperand::Kind::kConstant) {
      stack.push_back(operand.constant);
    } else {
      stack.push_back(list_to_ivalue(meta_stack(operand.items), operand.type));
    }
  }
  return stack;
}

}  // namespace halftone::compiler
