#include "text/template/calls.h"

#include <algorithm>

#include "text/template/operations.h"
#include "text/template/python_text.h"

namespace halftone::jinja {

std::vector<std::optional<Value>> bind_arguments(Rendering& rendering, std::string_view what,
                                                 const Arguments& arguments,
                                                 std::initializer_list<std::string_view> parameters) {
  std::vector<std::optional<Value>> bound(parameters.size());
  if (arguments.values.size() > parameters.size())
    rendering.fail_value("{} takes {} arguments, not {}", what, parameters.size(), arguments.values.size());
  for (size_t i = 0; i < arguments.values.size(); ++i) bound[i] = arguments.values[i];
  for (const auto& [name, value] : arguments.keywords) {
    const auto* found = std::find(parameters.begin(), parameters.end(), name);
    if (found == parameters.end())
      rendering.fail_unsupported(fmt::format("{} with an argument {}", what, name));
    std::optional<Value>& place = bound[static_cast<size_t>(found - parameters.begin())];
    if (place) rendering.fail_value("{} has the argument {} twice", what, name);
    place = value;
  }
  return bound;
}

const std::string& to_text(Rendering& rendering, const Value& value, std::string_view what) {
  require_defined(rendering, value);
  const std::string* text = try_text(value);
  if (text == nullptr) rendering.fail_value("{} is {}, not a text", what, kind_name(value));
  return *text;
}

namespace {

constexpr int64_t kMaxRange = 100'000;  // as in Jinja's sandbox

Value make_namespace(Rendering& rendering, const Arguments& arguments) {
  Namespace* space = rendering.make_namespace();
  const auto put = [&](std::string_view name, const Value& value) {
    rendering.reserve(sizeof(Value) + name.size());
    space->names.emplace_back(name, value);
  };
  if (arguments.values.size() > 1)
    rendering.fail_value("namespace() takes one argument, not {}", arguments.values.size());
  for (const Value& value : arguments.values) {
    const Dict* dict = try_dict(value);
    if (dict == nullptr) rendering.fail_unsupported(fmt::format("namespace() of {}", kind_name(value)));
    for (const auto& [key, entry] : dict->entries)
      put(to_text(rendering, key, "a name in namespace()"), entry);
  }
  for (const auto& [name, value] : arguments.keywords) put(name, value);
  return space;
}

Value range(Rendering& rendering, const Arguments& arguments) {
  if (!arguments.keywords.empty() || arguments.values.empty() || arguments.values.size() > 3)
    rendering.fail_value("range() takes one to three numbers");
  std::vector<int64_t> numbers;
  for (const Value& value : arguments.values) {
    require_defined(rendering, value);
    numbers.push_back(to_integer(rendering, value, "an argument of range()"));
    // Beyond these the count alone would overflow; a range that long is refused anyway.
    if (numbers.back() > (int64_t{1} << 53) || numbers.back() < -(int64_t{1} << 53))
      rendering.fail_unsupported("such a number in range()");
  }
  const int64_t begin = numbers.size() > 1 ? numbers[0] : 0,
                end = numbers.size() > 1 ? numbers[1] : numbers[0];
  const int64_t step = numbers.size() > 2 ? numbers[2] : 1;
  if (step == 0) rendering.fail_value("the step of range() is 0");
  const int64_t count = step > 0 ? (end - begin + step - 1) / step : (begin - end - step - 1) / -step;
  if (count > kMaxRange) rendering.fail_value("range() of {} numbers; it may have {}", count, kMaxRange);
  std::vector<Value> items;
  for (int64_t i = 0; i < count; ++i) items.emplace_back(begin + i * step);
  return rendering.list(std::move(items));
}

Value make_dict(Rendering& rendering, const Arguments& arguments) {
  if (!arguments.values.empty()) rendering.fail_unsupported("dict() of a value");
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [name, value] : arguments.keywords)
    entries.emplace_back(rendering.text(std::string(name)), value);
  return rendering.dict(std::move(entries));
}

Value strftime_now(Rendering& rendering, const Arguments& arguments) {
  const auto bound = bind_arguments(rendering, "strftime_now()", arguments, {"format"});
  const std::string format = to_text(rendering, bound[0].value_or(Undefined{"the format of strftime_now()"}),
                                     "the format of strftime_now()");
  if (format.empty()) return rendering.text("");
  // Widths and flags between % and the letter are glibc's own.
  constexpr std::string_view kLetters = "aAbBcdHIjmMpSUwWxXyYZzeDFTRGgVuCnthr%";
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') continue;
    if (++i == format.size() || kLetters.find(format[i]) == std::string_view::npos)
      rendering.fail_unsupported(
          fmt::format("strftime_now() with %{}", beginning(std::string_view(format).substr(i), 4)));
  }
  std::tm time{};
  const std::time_t now = rendering.now();
  if (localtime_r(&now, &time) == nullptr) rendering.fail_unsupported("strftime_now() at this time");
  // The first character tells an empty result from one that does not fit.
  std::string out(1024, '\0');
  const size_t length = std::strftime(out.data(), out.size(), ("x" + format).c_str(), &time);
  if (length == 0) rendering.fail_unsupported("so long a text of strftime_now()");
  return rendering.text(out.substr(1, length - 1));
}

[[noreturn]] void raise_exception(Rendering& rendering, const Arguments& arguments) {
  const auto bound = bind_arguments(rendering, "raise_exception()", arguments, {"message"});
  const std::string* message = bound[0] ? try_text(*bound[0]) : nullptr;
  rendering.fail_value("the template refuses these messages: {}",
                       message != nullptr ? beginning(*message, 1000) : std::string_view());
}

}  // namespace

std::optional<Value> try_function(Rendering& rendering, std::string_view name) {
  if (name == "namespace") return Function::kNamespace;
  if (name == "range") return Function::kRange;
  if (name == "dict") return Function::kDict;
  if (name == "raise_exception") return Function::kRaiseException;
  if (name == "strftime_now") return Function::kStrftimeNow;
  if (name == "cycler" || name == "joiner" || name == "lipsum")
    rendering.fail_unsupported(fmt::format("the function {}()", name));
  return std::nullopt;
}

Value call_function(Rendering& rendering, Function function, const Arguments& arguments) {
  switch (function) {
    case Function::kNamespace:
      return make_namespace(rendering, arguments);
    case Function::kRange:
      return range(rendering, arguments);
    case Function::kDict:
      return make_dict(rendering, arguments);
    case Function::kStrftimeNow:
      return strftime_now(rendering, arguments);
    case Function::kRaiseException:
      raise_exception(rendering, arguments);
  }
  return None{};
}

}  // namespace halftone::jinja
