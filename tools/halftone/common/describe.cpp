#include "common/describe.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "halftone/cli/summary.h"

namespace halftone::cli {

std::string dtype_name(c10::ScalarType dtype) {
  // torch keeps both names: the Python one first, and for some types an older alias.
  const auto [name, alias] = c10::getDtypeNames(dtype);
  return name.empty() ? c10::toString(dtype) : std::string(name);
}

std::string describe_sizes(at::IntArrayRef sizes) {
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

std::string describe_value(const Value& value) {
  if (value.type() == ValueType::kNone) return "None";
  if (value.type() != ValueType::kTensor) return std::string(to_string(value.type()));
  if (!value.meta()) return "tensor";
  return dtype_name(value.meta()->dtype) + " " + format_sizes(value.meta()->sizes);
}

std::string describe_result(const Argument& result) {
  if (const Value* value = result.value()) return describe_value(*value);
  if (result.get_if<bool>() != nullptr) return "bool";
  if (result.get_if<int64_t>() != nullptr) return "int";
  if (result.get_if<double>() != nullptr) return "float";
  if (result.get_if<std::string>() != nullptr) return "string";
  return result.is_none() ? "None" : "constant";
}

}  // namespace halftone::cli
