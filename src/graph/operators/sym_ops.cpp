#include "graph/operators/sym_ops.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "base/checked.h"
#include "base/errors.h"

namespace halftone {
namespace {

using Operands = std::span<const c10::IValue>;

bool is_float(const c10::IValue& value) {
  return value.isDouble();
}

int64_t as_int(const c10::IValue& value) {
  if (value.isInt()) return value.toInt();
  if (value.isBool()) return static_cast<int64_t>(value.toBool());
  fail(ErrorCode::kInvalidArgument, "size arithmetic on a {}", value.tagKind());
}

double as_double(const c10::IValue& value) {
  return is_float(value) ? value.toDouble() : static_cast<double>(as_int(value));
}

int64_t fitting(std::optional<int64_t> result) {
  if (!result) fail(ErrorCode::kInvalidArgument, "size arithmetic overflows 64 bits");
  return *result;
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) fail(ErrorCode::kInvalidArgument, "size arithmetic divides by zero");
  if (b == -1) return fitting(checked_sub<int64_t>(0, a));
  const int64_t quotient = a / b;
  return quotient - static_cast<int64_t>(a % b != 0 && (a < 0) != (b < 0));
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == 0) fail(ErrorCode::kInvalidArgument, "size arithmetic divides by zero");
  if (b == -1) return 0;
  const int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

int64_t int_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i) {
    result = fitting(checked_mul(result, base));
    if (result == 0 || (result == 1 && base == 1)) break;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  }
  return result;
}

/// Integer rule unless one operand is a float.
template <typename IntRule, typename FloatRule>
c10::IValue arithmetic(Operands x, IntRule int_rule, FloatRule float_rule) {
  if (is_float(x[0]) || is_float(x[1])) return float_rule(as_double(x[0]), as_double(x[1]));
  return int_rule(as_int(x[0]), as_int(x[1]));
}

template <typename Rule>
c10::IValue comparison(Operands x, Rule rule) {
  if (is_float(x[0]) || is_float(x[1])) return rule(as_double(x[0]), as_double(x[1]));
  return rule(as_int(x[0]), as_int(x[1]));
}

c10::IValue float_to_int(double value) {
  if (!(std::abs(value) < 9.2e18))
    fail(ErrorCode::kInvalidArgument, "{} does not fit a 64-bit integer", value);
  return static_cast<int64_t>(value);
}

c10::IValue add(Operands x) {
  return arithmetic(
      x, [](int64_t a, int64_t b) { return fitting(checked_add(a, b)); }, std::plus<double>());
}
c10::IValue sub(Operands x) {
  return arithmetic(
      x, [](int64_t a, int64_t b) { return fitting(checked_sub(a, b)); }, std::minus<double>());
}
c10::IValue mul(Operands x) {
  return arithmetic(
      x, [](int64_t a, int64_t b) { return fitting(checked_mul(a, b)); }, std::multiplies<double>());
}
c10::IValue floordiv(Operands x) {
  return arithmetic(x, floor_divide, [](double a, double b) { return std::floor(a / b); });
}
c10::IValue truediv(Operands x) {
  if (as_double(x[1]) == 0) fail(ErrorCode::kInvalidArgument, "size arithmetic divides by zero");
  return as_double(x[0]) / as_double(x[1]);
}
c10::IValue mod(Operands x) {
  return arithmetic(x, floor_modulo, [](double a, double b) { return a - b * std::floor(a / b); });
}
c10::IValue power(Operands x) {
  if (!is_float(x[0]) && !is_float(x[1]) && as_int(x[1]) >= 0) return int_power(as_int(x[0]), as_int(x[1]));
  return std::pow(as_double(x[0]), as_double(x[1]));
}
c10::IValue shift_left(Operands x) {
  const int64_t bits = as_int(x[1]);
  if (bits < 0 || bits > 62) fail(ErrorCode::kInvalidArgument, "size arithmetic shifts by {}", bits);
  return fitting(checked_mul(as_int(x[0]), int64_t{1} << bits));
}
c10::IValue shift_right(Operands x) {
  const int64_t bits = as_int(x[1]);
  if (bits < 0 || bits > 63) fail(ErrorCode::kInvalidArgument, "size arithmetic shifts by {}", bits);
  return as_int(x[0]) >> bits;
}
c10::IValue negate(Operands x) {
  if (is_float(x[0])) return -x[0].toDouble();
  return fitting(checked_sub<int64_t>(0, as_int(x[0])));
}
c10::IValue absolute(Operands x) {
  return is_float(x[0]) ? c10::IValue(std::abs(x[0].toDouble())) : as_int(x[0]) < 0 ? negate(x) : x[0];
}
c10::IValue maximum(Operands x) {
  return as_double(x[1]) > as_double(x[0]) ? x[1] : x[0];
}
c10::IValue minimum(Operands x) {
  return as_double(x[1]) < as_double(x[0]) ? x[1] : x[0];
}
c10::IValue sum(Operands x) {
  c10::IValue total = int64_t{0};
  for (const c10::IValue& item : x[0].toTupleRef().elements()) total = add(std::array{total, item});
  return total;
}
c10::IValue logical_and(Operands x) {
  return as_int(x[0]) != 0 && as_int(x[1]) != 0;
}
c10::IValue logical_or(Operands x) {
  return as_int(x[0]) != 0 || as_int(x[1]) != 0;
}
c10::IValue logical_not(Operands x) {
  return as_int(x[0]) == 0;
}
c10::IValue if_then_else(Operands x) {
  return as_int(x[0]) != 0 ? x[1] : x[2];
}
c10::IValue to_int(Operands x) {
  return is_float(x[0]) ? float_to_int(std::trunc(x[0].toDouble())) : as_int(x[0]);
}
c10::IValue round_to(Operands x) {
  if (x.size() == 1) return is_float(x[0]) ? float_to_int(std::nearbyint(x[0].toDouble())) : x[0];
  const double scale = std::pow(10.0, static_cast<double>(as_int(x[1])));
  return std::nearbyint(as_double(x[0]) * scale) / scale;
}

const std::map<std::string_view, SymFunction> kFunctions = {
    {"sym::add", add},
    {"sym::sub", sub},
    {"sym::mul", mul},
    {"sym::floordiv", floordiv},
    {"sym::truediv", truediv},
    {"sym::mod", mod},
    {"sym::pow", power},
    {"sym::neg", negate},
    {"sym::pos", [](Operands x) { return x[0]; }},
    {"sym::abs", absolute},
    {"sym::eq", [](Operands x) { return comparison(x, std::equal_to<>()); }},
    {"sym::ne", [](Operands x) { return comparison(x, std::not_equal_to<>()); }},
    {"sym::lt", [](Operands x) { return comparison(x, std::less<>()); }},
    {"sym::le", [](Operands x) { return comparison(x, std::less_equal<>()); }},
    {"sym::gt", [](Operands x) { return comparison(x, std::greater<>()); }},
    {"sym::ge", [](Operands x) { return comparison(x, std::greater_equal<>()); }},
    {"sym::and", logical_and},
    {"sym::or", logical_or},
    {"sym::not", logical_not},
    {"sym::lshift", shift_left},
    {"sym::rshift", shift_right},
    {"sym::max", maximum},
    {"sym::min", minimum},
    {"sym::sum", sum},
    {"sym::ite", if_then_else},
    {"sym::int", to_int},
    {"sym::float", [](Operands x) { return c10::IValue(as_double(x[0])); }},
    {"sym::sqrt", [](Operands x) { return c10::IValue(std::sqrt(as_double(x[0]))); }},
    {"sym::log2", [](Operands x) { return c10::IValue(std::log2(as_double(x[0]))); }},
    {"sym::trunc", to_int},
    {"sym::floor", [](Operands x) { return float_to_int(std::floor(as_double(x[0]))); }},
    {"sym::ceil", [](Operands x) { return float_to_int(std::ceil(as_double(x[0]))); }},
    {"sym::round", round_to},
};

}  // namespace

SymFunction try_sym_function(std::string_view name) {
  const auto found = kFunctions.find(name);
  return found == kFunctions.end() ? nullptr : found->second;
}

}  // namespace halftone
