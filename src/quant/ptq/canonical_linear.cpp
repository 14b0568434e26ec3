#include "quant/ptq/canonical_linear.h"

#include <optional>
#include <vector>

#include "graph/rewrite/edit.h"
#include "graph/rewrite/layout.h"

namespace halftone::ptq {
namespace {

/// Whether a number that is 1 where it is not given is 1.
bool is_unit(const Node& node, std::string_view name) {
  const Argument* argument = node.try_input(name);
  if (argument == nullptr) return true;
  if (const double* number = argument->get_if<double>()) return *number == 1.0;
  return argument->as_int() == 1;
}

std::optional<int64_t> dim_of(const Node& node, std::string_view name) {
  const Argument* argument = node.try_input(name);
  const std::optional<int64_t> dim = argument != nullptr ? argument->as_int() : std::nullopt;
  return dim ? std::optional((*dim + 2) % 2) : std::nullopt;
}

/// W where `value` is Wᵀ of a matrix; else nullptr.
Value* try_transposed_matrix(const Value* value) {
  Node* turn = value != nullptr ? value->producer() : nullptr;
  if (turn == nullptr || rank(value) != 2 || turn->inputs().empty()) return nullptr;
  const bool swaps = turn->is("aten::t") || turn->is("aten::numpy_T") ||
                     (turn->is("aten::transpose.int") && dim_of(*turn, "dim0") &&
                      dim_of(*turn, "dim0") != dim_of(*turn, "dim1"));
  return swaps ? turn->input(0).value() : nullptr;
}

struct LinearParts {
  Value *x = nullptr, *weight = nullptr, *bias = nullptr;
};

std::optional<LinearParts> try_linear_parts(const Node& node) {
  const auto operand = [&](std::string_view name) -> Value* {
    const Argument* argument = node.try_input(name);
    return argument != nullptr ? argument->value() : nullptr;
  };
  LinearParts parts;
  if (node.is("aten::addmm")) {
    parts = {operand("mat1"), try_transposed_matrix(operand("mat2")), operand("self")};
    if (parts.bias == nullptr || rank(parts.bias) != 1 || !is_unit(node, "beta") || !is_unit(node, "alpha"))
      return std::nullopt;
    // A bias of one element would be spread over all columns; a linear has one for each.
    if (parts.weight != nullptr && parts.bias->meta()->sizes[0] != parts.weight->meta()->sizes[0])
      return std::nullopt;
  } else if (node.is("aten::mm")) {
    parts = {operand("self"), try_transposed_matrix(operand("mat2")), nullptr};
  } else if (node.is("aten::matmul")) {
    parts = {operand("self"), try_transposed_matrix(operand("other")), nullptr};
    if (parts.x != nullptr && rank(parts.x) < 2) return std::nullopt;
  }
  return parts.x != nullptr && parts.weight != nullptr ? std::optional(parts) : std::nullopt;
}

}  // namespace

size_t make_linears(Graph& graph) {
  size_t count = 0;
  for (Node* node : snapshot(graph)) {
    const std::optional<LinearParts> parts = try_linear_parts(*node);
    if (!parts) continue;
    Value* old_value = node->output();
    const std::string name = old_value->name();
    Node* turn = nullptr;
    for (Value* operand : node->input_values()) {
      if (try_transposed_matrix(operand) == parts->weight) turn = operand->producer();
    }
    std::vector<NamedArgument> operands = {{"input", parts->x}, {"weight", parts->weight}};
    if (parts->bias != nullptr) operands.push_back({"bias", parts->bias});
    OutputSpec spec{.name = name, .type = old_value->type(), .meta = old_value->meta()};
    Value* made =
        graph.insert(node, "aten::linear", std::move(operands), {std::move(spec)}, node->source())->output();
    graph.replace_all_uses(old_value, made);
    graph.erase(node);
    graph.rename(made, name);
    if (turn != nullptr && turn->output()->users().empty()) graph.erase(turn);
    ++count;
  }
  return count;
}

}  // namespace halftone::ptq
