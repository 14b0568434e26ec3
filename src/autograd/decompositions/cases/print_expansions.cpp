// Prints each case and the operators that its decomposition calls, one JSON object a line: what
// python_test.py compares with torch's own decompositions.
#include <iostream>
#include <nlohmann/json.hpp>

#include "autograd/decompositions/cases/recorder.h"

namespace halftone {
namespace {

using nlohmann::json;

json tensor_to_json(const at::Tensor& tensor) {
  json object = {{"type", c10::toString(tensor.scalar_type())},
                 {"sizes", tensor.sizes().vec()},
                 {"strides", tensor.strides().vec()}};
  // Indices must be in range; other numbers do not change which operators are called.
  if (tensor.scalar_type() == at::kLong) {
    const at::Tensor flat = tensor.contiguous();
    object["values"] =
        std::vector<int64_t>(flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel());
  }
  return object;
}

json operand_to_json(const c10::IValue& operand) {
  if (operand.isTensor()) return operand.toTensor().defined() ? tensor_to_json(operand.toTensor()) : json();
  if (operand.isBool()) return operand.toBool();
  if (operand.isInt()) return operand.toInt();
  if (operand.isDouble()) {
    // JSON has no infinities.
    return std::isfinite(operand.toDouble()) ? json(operand.toDouble())
                                             : json{{"number", std::to_string(operand.toDouble())}};
  }
  if (operand.isString()) return operand.toStringRef();
  if (operand.isNone()) return nullptr;
  json list = json::array();
  for (const c10::IValue& element : operand.toListRef()) list.push_back(operand_to_json(element));
  return list;
}

}  // namespace
}  // namespace halftone

int main() {
  const halftone::DecompositionTable table = halftone::core_decompositions();
  const halftone::DecompositionTable defaults = halftone::default_decompositions();
  for (const halftone::Case& call : halftone::all_cases()) {
    const halftone::Expansion expansion = halftone::expand(table.at(call.op), call);
    nlohmann::json line = {
        {"op", call.op}, {"default", defaults.contains(call.op)}, {"operators", expansion.operators}};
    for (const c10::IValue& operand : call.operands)
      line["operands"].push_back(halftone::operand_to_json(operand));
    std::cout << line << '\n';
  }
}
