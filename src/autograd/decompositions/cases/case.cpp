#include "autograd/decompositions/cases/case.h"

#include <ATen/Context.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

namespace halftone {
namespace {

std::string describe_operand(const c10::IValue& operand) {
  if (operand.isTensor() && operand.toTensor().defined()) {
    const at::Tensor& tensor = operand.toTensor();
    return fmt::format("{} [{}]", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
  }
  std::ostringstream text;
  text << operand;
  return text.str();
}

}  // namespace

c10::OperatorHandle Case::handle() const {
  const size_t dot = op.find('.');
  const std::string overload = dot == std::string::npos ? "" : op.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchemaOrThrow(op.substr(0, dot).c_str(), overload.c_str());
}

std::string Case::describe() const {
  std::vector<std::string> texts;
  for (const c10::IValue& operand : operands) texts.push_back(describe_operand(operand));
  return fmt::format("{}({})", op, fmt::join(texts, ", "));
}

void CaseList::add(const std::string& op, torch::jit::Stack operands, bool sums) {
  add_wide(op, operands, sums);
  add_in(at::kBFloat16, op, operands, sums);
}

void CaseList::add_wide(const std::string& op, torch::jit::Stack operands, bool sums) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) add_in(type, op, operands, sums);
}

void CaseList::add_exact(const std::string& op, torch::jit::Stack operands, bool sums) {
  Case added{.op = op, .operands = std::move(operands), .sums = sums};
  const auto& arguments = added.handle().schema().arguments();
  while (added.operands.size() < arguments.size()) {
    added.operands.push_back(arguments.at(added.operands.size()).default_value().value());
  }
  for (const c10::IValue& operand : added.operands) {
    if (!operand.isTensor() || !operand.toTensor().defined()) continue;
    // The least precise operand says what may be asked of the results.
    const at::ScalarType type = c10::toRealValueType(operand.toTensor().scalar_type());
    if (c10::isFloatingType(type) && c10::elementSize(type) < c10::elementSize(added.type)) added.type = type;
  }
  cases_.push_back(std::move(added));
}

void CaseList::add_in(at::ScalarType type, const std::string& op, const torch::jit::Stack& operands,
                      bool sums) {
  torch::jit::Stack converted;
  for (const c10::IValue& operand : operands) {
    const bool is_float =
        operand.isTensor() && operand.toTensor().defined() && operand.toTensor().is_floating_point();
    converted.push_back(is_float ? c10::IValue(operand.toTensor().to(type)) : operand);
  }
  add_exact(op, std::move(converted), sums);
}

std::vector<Case> all_cases() {
  at::manual_seed(8);
  CaseList list;
  add_basic_cases(list);
  add_activation_cases(list);
  add_loss_cases(list);
  add_norm_cases(list);
  add_other_cases(list);
  return list.cases();
}

}  // namespace halftone
