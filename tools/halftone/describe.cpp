#include "describe.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <array>
#include <limits>

namespace halftone::cli {

namespace {

template <typename Sizes, typename ToText>
std::string join_sizes(const Sizes& sizes, ToText to_text) {
  std::string text = "[";
  for (const auto& size : sizes) {
    if (text.size() > 1) text += ", ";
    text += to_text(size);
  }
  return text + "]";
}

}  // namespace

std::string dtype_name(c10::ScalarType dtype) {
  // torch keeps both names: the Python one first, and for some types an older alias.
  const auto [name, alias] = c10::getDtypeNames(dtype);
  return name.empty() ? c10::toString(dtype) : std::string(name);
}

std::string describe_sizes(const std::vector<SymExpr>& sizes) {
  return join_sizes(sizes, [](const SymExpr& size) { return size.to_string(); });
}

std::string describe_sizes(at::IntArrayRef sizes) {
  return join_sizes(sizes, [](int64_t size) { return fmt::to_string(size); });
}

std::string describe_value(const Value& value) {
  if (value.type() == ValueType::kNone) return "None";
  if (value.type() != ValueType::kTensor) return std::string(to_string(value.type()));
  if (!value.meta()) return "tensor";
  return dtype_name(value.meta()->dtype) + " " + describe_sizes(value.meta()->sizes);
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

std::string describe_range(const SymbolRange& range) {
  const bool open = range.max == std::numeric_limits<int64_t>::max();
  if (open && range.min <= 0) return "";
  return open ? fmt::format("{}..", range.min) : fmt::format("{}..{}", range.min, range.max);
}

}  // namespace halftone::cli
