#include "graph/rewrite/functionalize.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "graph/operators/operators.h"
#include "graph/rewrite/edit.h"

namespace halftone {
namespace {

std::string_view name_without_overload(std::string_view target) {
  return target.substr(0, target.find('.'));
}

/// Also what schemas do not say: dropout in inference gives its operand back.
bool may_alias_operands(const Node& node, size_t output) {
  if (node.op() == nullptr) return true;
  const std::string_view base = name_without_overload(node.target());
  if (base.ends_with("dropout")) return true;
  const auto& returns = node.op()->schema().returns();
  return output >= returns.size() || returns[output].alias_info() != nullptr;
}

/// Whether the memory of a value is read by its one user only.
bool is_private(const Value& value) {
  if (value.producer() == nullptr || value.users().size() != 1) return false;
  const Node& producer = *value.producer();
  if (!may_alias_operands(producer, value.index())) return true;
  const std::vector<Value*> operands = producer.input_values();
  return std::all_of(operands.begin(), operands.end(), [](const Value* each) {
    return each->type() != ValueType::kTensor || is_private(*each);
  });
}

/// "aten::add.Tensor" of "aten::add_.Tensor", where there is such an operator; else "".
std::string functional_form(const Node& node) {
  const std::string_view target = node.target(), base = name_without_overload(target);
  if (node.op() == nullptr || !base.ends_with('_') || node.inputs().empty()) return {};
  std::string wanted(base.substr(0, base.size() - 1));
  wanted += target.substr(base.size());
  return try_operator(wanted) != nullptr ? wanted : std::string();
}

bool is_one_of(std::string_view target, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name_without_overload(target)) != names.end();
}

/// In place the answer takes the dtype of what was asked about.
bool gives_bools(std::string_view target) {
  static constexpr std::array<std::string_view, 15> kQuestions = {
      "aten::eq",        "aten::ne",          "aten::lt",         "aten::le",          "aten::gt",
      "aten::ge",        "aten::less",        "aten::less_equal", "aten::greater",     "aten::greater_equal",
      "aten::not_equal", "aten::logical_and", "aten::logical_or", "aten::logical_xor", "aten::logical_not"};
  return is_one_of(target, kQuestions);
}

/// Others give floating-point numbers, which cannot be written in place.
bool gives_integers_of_integers(std::string_view target) {
  static constexpr std::array<std::string_view, 12> kArithmetic = {
      "aten::add",   "aten::sub",  "aten::mul",  "aten::neg",         "aten::abs",  "aten::relu",
      "aten::clamp", "aten::fill", "aten::zero", "aten::masked_fill", "aten::copy", "aten::remainder"};
  return is_one_of(target, kArithmetic);
}

/// In place the result keeps its dtype; the functional form might give a wider one, or bool.
bool keeps_dtype(const Node& node, std::string_view functional, const Value& written) {
  if (!written.meta()) return false;
  const c10::ScalarType dtype = written.meta()->dtype;
  if (gives_bools(functional) ? dtype != at::kBool
                              : !c10::isFloatingType(dtype) && !gives_integers_of_integers(functional))
    return false;
  const std::vector<Value*> operands = node.input_values();
  return std::all_of(operands.begin(), operands.end(), [&](const Value* each) {
    return each->type() != ValueType::kTensor || (each->meta() && each->meta()->dtype == dtype);
  });
}

}  // namespace

size_t functionalize(Graph& graph) {
  size_t count = 0;
  for (Node* node : snapshot(graph)) {
    const std::string target = functional_form(*node);
    const Value* written = target.empty() ? nullptr : node->input(0).value();
    if (written == nullptr || !is_private(*written) || !keeps_dtype(*node, target, *written)) continue;
    Value* old_value = node->output();
    const std::string name = old_value->name();
    OutputSpec spec{.name = name, .type = old_value->type(), .meta = old_value->meta()};
    Value* made = graph.insert(node, target, node->inputs(), {std::move(spec)}, node->source())->output();
    graph.replace_all_uses(old_value, made);
    graph.erase(node);
    graph.rename(made, name);
    ++count;
  }
  return count;
}

}  // namespace halftone
