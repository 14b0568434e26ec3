#include "backend/compare.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/view_as_real.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "backend/graph_case.h"
#include "graph/aten/dtype_text.h"

namespace halftone {
namespace {

double step_of(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Half:
      return 0x1p-10;
    case c10::ScalarType::BFloat16:
      return 0x1p-7;
    case c10::ScalarType::Double:
    case c10::ScalarType::Float:
      return 0x1p-23;
    default:
      return 0x1p-2;  // of eight bits
  }
}

at::Tensor as_doubles(const at::Tensor& tensor) {
  at::Tensor plain = tensor.detach();
  if (plain.is_complex()) plain = at::view_as_real(plain.resolve_conj());
  return plain.to(c10::ScalarType::Double);
}

/// For each element, whether it is wrong.
at::Tensor wrong_elements(const at::Tensor& result, const at::Tensor& expected, double tolerance) {
  const at::Tensor near =
      (result - expected).abs().le(expected.abs().add(1).mul(tolerance)).logical_and(expected.isfinite());
  // Infinities are right if they are equal, and so are NaNs.
  const at::Tensor equal = result.eq(expected).logical_or(result.isnan().logical_and(expected.isnan()));
  return near.logical_or(equal).logical_not();
}

double mean_square(const at::Tensor& error) {
  return error.square().mean().item().toDouble();
}

/// Whether the result is no further from the exact one than the interpreter's is, twice at most.
bool settled_by(const at::Tensor& exact, const at::Tensor& result, const at::Tensor& expected,
                double tolerance) {
  if (exact.sizes() != expected.sizes()) return false;
  if (!wrong_elements(result, exact, tolerance).any().item().toBool()) return true;
  return mean_square(result - exact) <= 4 * mean_square(expected - exact);
}

std::optional<std::string> tensor_difference(const at::Tensor& result, const at::Tensor& expected,
                                             const at::Tensor& exact, double tolerance) {
  if (result.defined() != expected.defined()) return "is there in one of the two only";
  if (!expected.defined()) return std::nullopt;
  if (result.scalar_type() != expected.scalar_type() || result.sizes() != expected.sizes()) {
    return fmt::format("is {} [{}] instead of {} [{}]", dtype_text(result.scalar_type()),
                       fmt::join(result.sizes(), ", "), dtype_text(expected.scalar_type()),
                       fmt::join(expected.sizes(), ", "));
  }
  if (!expected.is_floating_point() && !expected.is_complex()) {
    if (result.detach().equal(expected.detach())) return std::nullopt;
    return fmt::format("differs in {} of {} elements", result.ne(expected).sum().item().toLong(),
                       expected.numel());
  }
  tolerance = std::max(tolerance, 8 * step_of(expected.scalar_type()));
  const at::Tensor a = as_doubles(result);
  const at::Tensor b = as_doubles(expected);
  const int64_t wrong = wrong_elements(a, b, tolerance).sum().item().toLong();
  if (wrong == 0) return std::nullopt;
  if (exact.defined() && settled_by(as_doubles(exact), a, b, tolerance)) return std::nullopt;
  const double largest = (a - b).abs().nan_to_num().max().item().toDouble();
  return fmt::format("differs in {} of {} elements, by {:.3g} at most", wrong, expected.numel(), largest);
}

std::optional<std::string> value_difference(const c10::IValue& result, const c10::IValue& expected,
                                            const c10::IValue* exact, double tolerance) {
  if (result.isTensor() && expected.isTensor()) {
    const at::Tensor doubles = exact && exact->isTensor() ? exact->toTensor() : at::Tensor();
    return tensor_difference(result.toTensor(), expected.toTensor(), doubles, tolerance);
  }
  if (result.isList() && expected.isList()) {
    const c10::ArrayRef<c10::IValue> items = expected.toListRef();
    if (result.toListRef().size() != items.size()) return "is a list of another length";
    for (size_t i = 0; i < items.size(); ++i) {
      if (auto found = value_difference(result.toListRef()[i], items[i], nullptr, tolerance)) return found;
    }
    return std::nullopt;
  }
  if (result.isDouble() && expected.isDouble())
    return tensor_difference(at::scalar_tensor(result.toDouble(), c10::ScalarType::Double),
                             at::scalar_tensor(expected.toDouble(), c10::ScalarType::Double), {}, tolerance);
  const bool same =
      result.isNone() || expected.isNone() ? result.isNone() == expected.isNone() : result == expected;
  if (same) return std::nullopt;
  return "is another value";
}

Argument with_doubles(const Argument& argument) {
  if (const auto* list = argument.list()) {
    Argument::List items;
    for (const Argument& item : *list) items.push_back(with_doubles(item));
    return items;
  }
  const auto* type = argument.get_if<c10::ScalarType>();
  return type && c10::isFloatingType(*type) ? Argument(c10::ScalarType::Double) : argument;
}

void make_double(Value& value) {
  if (!value.meta() || !c10::isFloatingType(value.meta()->dtype)) return;
  TensorMeta meta = *value.meta();
  meta.dtype = c10::ScalarType::Double;
  value.set_meta(std::move(meta));
}

c10::IValue as_double(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined() || !value.toTensor().is_floating_point()) return value;
  return value.toTensor().detach().to(c10::ScalarType::Double);
}

}  // namespace

std::optional<std::string> find_difference(const std::vector<Observed>& results,
                                           const std::vector<Observed>& expected,
                                           const std::vector<Observed>& exact, double tolerance) {
  if (results.size() != expected.size())
    return fmt::format("{} values instead of {}", results.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const c10::IValue* doubles = exact.size() == expected.size() ? &exact[i].value : nullptr;
    if (auto found = value_difference(results[i].value, expected[i].value, doubles, tolerance))
      return fmt::format("{} {}", expected[i].name, *found);
  }
  return std::nullopt;
}

GraphCase in_float64(const GraphCase& graph_case) {
  auto graph = graph_case.module->graph().clone();
  for (const GraphInput& input : graph->inputs()) make_double(*input.value);
  for (const auto& node : graph->nodes()) {
    for (size_t i = 0; i < node->inputs().size(); ++i) node->set_input(i, with_doubles(node->input(i)));
    for (Value* output : node->outputs()) make_double(*output);
  }
  TensorMap tensors;
  for (const auto& [name, tensor] : *graph_case.module->tensors())
    tensors.emplace(name, as_double(tensor).toTensor());
  std::vector<c10::IValue> inputs;
  for (const c10::IValue& input : graph_case.inputs) inputs.push_back(as_double(input));
  return {graph_case.module->with_flat_graph(std::move(graph), std::move(tensors)), std::move(inputs)};
}

}  // namespace halftone
