#include "graph/ir/read_node.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

#include "graph/operators/operands.h"

namespace halftone {
namespace {

std::optional<c10::IValue> constant_operand(const Node& node, std::string_view name) {
  if (const Argument* given = node.try_input(name)) {
    if (given->value() != nullptr || given->list() != nullptr ||
        given->get_if<std::shared_ptr<Graph>>() != nullptr)
      return std::nullopt;
    return constant_to_ivalue(*given, nullptr);
  }
  if (node.op() == nullptr) return std::nullopt;
  const auto index = node.op()->schema().argumentIndexWithName(name);
  if (!index) return std::nullopt;
  const auto& otherwise = node.op()->schema().arguments()[static_cast<size_t>(*index)].default_value();
  return otherwise ? std::optional(*otherwise) : std::nullopt;
}

}  // namespace

std::optional<double> try_number(const Node& node, std::string_view name) {
  const auto constant = constant_operand(node, name);
  if (!constant) return std::nullopt;
  if (constant->isDouble()) return constant->toDouble();
  if (constant->isInt()) return static_cast<double>(constant->toInt());
  return std::nullopt;
}

std::optional<bool> try_flag(const Node& node, std::string_view name) {
  const auto constant = constant_operand(node, name);
  return constant && constant->isBool() ? std::optional(constant->toBool()) : std::nullopt;
}

std::optional<std::string> try_text(const Node& node, std::string_view name) {
  const auto constant = constant_operand(node, name);
  return constant && constant->isString() ? std::optional(constant->toStringRef()) : std::nullopt;
}

std::optional<std::vector<int64_t>> try_integers(const Node& node, std::string_view name) {
  const Argument* given = node.try_input(name);
  if (given == nullptr) return std::nullopt;
  if (const auto single = given->as_int()) return std::vector{*single};
  if (given->list() == nullptr) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Argument& item : *given->list()) {
    const auto number = item.as_int();
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

bool is_absent(const Node& node, std::string_view name) {
  const Argument* given = node.try_input(name);
  return given == nullptr || given->is_none();
}

Value* try_tensor(const Node& node, std::string_view name) {
  const Argument* given = node.try_input(name);
  Value* value = given != nullptr ? given->value() : nullptr;
  return value != nullptr && value->type() == ValueType::kTensor ? value : nullptr;
}

Node* try_producer(const Value* value, std::initializer_list<std::string_view> targets) {
  Node* node = value != nullptr ? value->producer() : nullptr;
  if (node == nullptr) return nullptr;
  return std::find(targets.begin(), targets.end(), node->target()) != targets.end() ? node : nullptr;
}

Node* only_user(const Value* value) {
  if (value->users().size() != 1) return nullptr;
  Node* user = value->users().front();
  return user->is("return") ? nullptr : user;
}

}  // namespace halftone
