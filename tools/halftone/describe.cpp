#include "describe.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "halftone/summary.h"

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

std::string describe_bytes(int64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double amount = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  // 999.95 and more would be written as 1000.0.
  while (amount >= 999.95 && unit + 1 < kUnits.size()) {
    amount /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string with_commas(int64_t number) {
  std::string text = fmt::to_string(number);
  for (int64_t i = static_cast<int64_t>(text.size()) - 3; i > (number < 0 ? 1 : 0); i -= 3)
    text.insert(i, ",");
  return text;
}

}  // namespace halftone::cli
