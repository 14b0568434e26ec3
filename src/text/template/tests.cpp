// The tests: value is name(arguments).
#include "text/template/calls.h"
#include "text/template/letter_case.h"
#include "text/template/operations.h"
#include "text/template/python_text.h"
#include "text/template/text_forms.h"

namespace halftone::jinja {

namespace {

std::optional<bool> try_kind_test(std::string_view name, const Value& value) {
  const bool iterable = is<Undefined>(value) || try_text(value) != nullptr || try_list(value) != nullptr ||
                        try_dict(value) != nullptr;
  const bool sequence = iterable && (try_list(value) == nullptr || try_list(value)->is_stored());
  if (name == "defined") return !is<Undefined>(value);
  if (name == "undefined") return is<Undefined>(value);
  if (name == "none") return is<None>(value);
  if (name == "string") return try_text(value) != nullptr;
  if (name == "number") return is_number(value);
  if (name == "integer") return is<int64_t>(value);
  if (name == "float") return is<double>(value);
  if (name == "boolean") return is<bool>(value);
  if (name == "true") return is<bool>(value) && std::get<bool>(value);
  if (name == "false") return is<bool>(value) && !std::get<bool>(value);
  if (name == "mapping") return try_dict(value) != nullptr;
  if (name == "sequence") return sequence;
  if (name == "iterable") return iterable || is<Loop*>(value);
  if (name == "callable")
    return is<const Macro*>(value) || is<Function>(value) || is<const Method*>(value) || is<Undefined>(value);
  return std::nullopt;
}

std::optional<bool> try_comparing_test(Rendering& r, std::string_view name, const Value& a, const Value& b) {
  if (name == "eq" || name == "equalto" || name == "==") return is_equal(r, a, b);
  if (name == "ne" || name == "!=") return !is_equal(r, a, b);
  if (name == "in") return contains(r, b, a);
  if (name == "lt" || name == "lessthan" || name == "<") return order_of(r, a, b) < 0;
  if (name == "gt" || name == "greaterthan" || name == ">") return order_of(r, a, b) > 0;
  if (name == "le" || name == "<=") return order_of(r, a, b) <= 0;
  if (name == "ge" || name == ">=") return order_of(r, a, b) >= 0;
  if (name == "divisibleby") return !is_true(calculate(r, "%", a, b));
  return std::nullopt;
}

std::optional<bool> try_own_test(Rendering& r, std::string_view name, const Value& value) {
  if (name == "odd" || name == "even") {
    const Value rest = calculate(r, "%", value, int64_t{2});
    return is_equal(r, rest, int64_t{name == "odd" ? 1 : 0});
  }
  if (name != "lower" && name != "upper") return std::nullopt;
  // As str.islower(): at least one letter, and none of the other case.
  const std::string text = text_of(r, value);
  const std::string lower = lower_case(r, text), upper = upper_case(r, text);
  return (name == "lower" ? lower : upper) == text && lower != upper;
}

}  // namespace

bool apply_test(Rendering& rendering, std::string_view name, const Value& value, const Arguments& arguments) {
  rendering.spend(1);
  if (!arguments.keywords.empty())
    rendering.fail_unsupported(fmt::format("the test {} with named arguments", beginning(name)));
  const size_t count = arguments.values.size();
  const auto checked_count = [&](bool result, size_t wanted) {
    if (count != wanted)
      rendering.fail_value("the test {} takes {} arguments, not {}", beginning(name), wanted, count);
    return result;
  };
  if (const auto result = try_kind_test(name, value)) return checked_count(*result, 0);
  if (count == 1) {
    if (const auto result = try_comparing_test(rendering, name, value, arguments.values.front()))
      return *result;
  }
  if (count == 0) {
    if (const auto result = try_own_test(rendering, name, value)) return *result;
  }
  rendering.fail_unsupported(fmt::format("the test {} with {} arguments", beginning(name), count));
}

}  // namespace halftone::jinja
