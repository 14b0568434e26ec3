// The planner trusts no declaration of a graph: sizes and types are computed, or compared by a step.
#include <algorithm>

#include "base/errors.h"
#include "compiler/executor/planner.h"
#include "graph/checks/check_shapes.h"

namespace halftone::compiler {

namespace {

/// Whether a tensor, or each of a list, is one of the plan.
bool is_planned(const StepOperand& operand, const c10::TypePtr& type) {
  if (operand.kind == StepOperand::Kind::kSlot) return true;
  if (operand.kind == StepOperand::Kind::kConstant) return operand.constant.isNone() || !wants_tensor(type);
  return std::all_of(operand.items.begin(), operand.items.end(), [](const StepOperand& item) {
    return item.kind == StepOperand::Kind::kSlot || !item.constant.isTensor();
  });
}

}  // namespace

std::string describe(const Node& node) {
  return fmt::format("{} in layer \"{}\"", node.target(), node.source().layer);
}

size_t extent_bytes(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return static_cast<size_t>(last + 1) * tensor.element_size();
}

void Planner::require_declared(const Value* output, const at::Tensor& computed) const {
  const std::string difference = difference_from_declared(*output, computed, inputs_.bindings);
  if (!difference.empty()) fail(ErrorCode::kInvalidArgument, "%{} {}", output->name(), difference);
}

MetaAnswer Planner::ask(const Node& node) const {
  if (writes_to_operand(node)) return {};  // it would change the sizes in the plan
  MetaAnswer answer = ask_operator(node, meta_stack(schema_operands(node)));
  if (answer.kind != MetaAnswer::Kind::kKnown) return answer;
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const c10::IValue& result = answer.results.at(i);
    if (!result.isTensor() || !result.toTensor().defined() || !is_used(node.output(i))) continue;
    require_memory_for(result.toTensor());
    require_declared(node.output(i), result.toTensor());
  }
  return answer;
}

bool Planner::is_ready_to_emit(const Node& node, const MetaAnswer& answer, std::string& reason) const {
  if (answer.kind != MetaAnswer::Kind::kKnown) {
    reason = "sizes that are known only after the run";
    return false;
  }
  for (const Value* output : node.outputs()) {
    if (is_used(output) && output->type() == ValueType::kTensor && !output->meta()) {
      reason = "the graph does not say what it gives";
      return false;
    }
  }
  const auto& arguments = node.op()->schema().arguments();
  const std::vector<StepOperand> operands = schema_operands(node);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (is_planned(operands[i], arguments[i].type())) continue;
    reason = "a number stands for a tensor";
    return false;
  }
  return true;
}

bool Planner::lies_inside(const Slot& slot) const {
  const int64_t start = slot.operand().byte_offset;
  return start >= 0 && static_cast<size_t>(start) + extent_bytes(slot.meta) <=
                           plan_->buffers[static_cast<size_t>(slot.buffer)].bytes;
}

void Planner::require_plain_memory(const Node& node, const Slot& base) const {
  const Value* value = node.input(0).value();
  const auto kind = plan_->buffers[static_cast<size_t>(base.buffer)].kind;
  const bool given = kind == Buffer::Kind::kInput || kind == Buffer::Kind::kConstant;
  const bool counts_from_storage = !constant(node, "storage_offset").isNone();
  const bool as_declared = !value->meta() || strides_of(value) == base.strides();
  if (!as_declared || !base.meta.is_contiguous() || base.meta.storage_offset() != 0 ||
      (given && counts_from_storage))
    throw NotPlannable(describe(node) + " reads memory that lies otherwise in the plan");
}

}  // namespace halftone::compiler
