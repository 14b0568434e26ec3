// The filters: value | name(arguments).
#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/template/calls.h"
#include "text/template/letter_case.h"
#include "text/template/operations.h"
#include "text/template/python_text.h"
#include "text/template/text_forms.h"

namespace halftone::jinja {

namespace {

/// A filter that is being applied.
struct FilterCall {
  Rendering& rendering;
  std::string_view name;
  const Value& value;
  const Arguments& arguments;

  std::vector<std::optional<Value>> bound(std::initializer_list<std::string_view> parameters) const {
    return bind_arguments(rendering, fmt::format("the filter {}", name), arguments, parameters);
  }
  std::string text() const { return text_of(rendering, value); }
};

using Filter = Value (*)(const FilterCall&);

Value filter_text_case(const FilterCall& call) {
  call.bound({});
  Rendering& r = call.rendering;
  const std::string text = call.text();
  if (call.name == "upper") return r.text(upper_case(r, text));
  if (call.name == "lower") return r.text(lower_case(r, text));
  if (call.name == "capitalize") return r.text(capitalized(r, text));
  return r.text(title_case(r, text, false));
}

Value filter_trim(const FilterCall& call) {
  const auto bound = call.bound({"chars"});
  Arguments arguments;
  if (bound[0]) arguments.values.push_back(*bound[0]);
  const Value text = as_text(call.rendering, call.value);
  return call_method(call.rendering, {text, "strip"}, arguments);
}

Value filter_string(const FilterCall& call) {
  call.bound({});
  return as_text(call.rendering, call.value);
}

Value filter_safe(const FilterCall& call) {
  call.bound({});
  return call.rendering.safe_text(call.text());
}

Value filter_length(const FilterCall& call) {
  call.bound({});
  if (const std::string* text = try_text(call.value)) {
    call.rendering.spend_on(text->size());
    return static_cast<int64_t>(length_of(*text));
  }
  const List* list = try_list(call.value);
  if (list != nullptr && list->kind == ListKind::kGenerator)
    call.rendering.fail_value("a generator has no length");
  return static_cast<int64_t>(items_of(call.rendering, call.value).size());
}

Value filter_default(const FilterCall& call) {
  const auto bound = call.bound({"default_value", "boolean"});
  const bool also_false = bound[1] && is_true(*bound[1]);
  if (!is<Undefined>(call.value) && (!also_false || is_true(call.value))) return call.value;
  return bound[0] ? *bound[0] : call.rendering.text("");
}

/// "a.b.0" of an item, as the argument attribute= has it.
Value attribute_path(Rendering& rendering, Value item, const Value& path) {
  if (is<int64_t>(path)) return item_of(rendering, item, path);
  std::string_view rest = to_text(rendering, path, "the argument attribute");
  while (true) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    int64_t index = 0;
    const bool is_index =
        std::from_chars(part.data(), part.data() + part.size(), index).ptr == part.data() + part.size() &&
        !part.empty();
    item = item_of(rendering, item, is_index ? Value(index) : rendering.text(std::string(part)));
    if (dot == std::string_view::npos) return item;
    rest.remove_prefix(dot + 1);
  }
}

Value filter_join(const FilterCall& call) {
  const auto bound = call.bound({"d", "attribute"});
  Rendering& r = call.rendering;
  const std::string separator = bound[0] ? text_of(r, *bound[0]) : "";
  std::string out;
  bool first = true;
  for (Value item : items_of(r, call.value)) {
    if (bound[1] && !is<None>(*bound[1])) item = attribute_path(r, item, *bound[1]);
    const std::string part = text_of(r, item);
    r.reserve(part.size() + separator.size());
    if (!std::exchange(first, false)) out += separator;
    out += part;
  }
  return r.text(std::move(out));
}

Value filter_list(const FilterCall& call) {
  call.bound({});
  return call.rendering.list(items_of(call.rendering, call.value));
}

Value filter_end(const FilterCall& call) {
  call.bound({});
  const std::vector<Value> items = items_of(call.rendering, call.value);
  if (items.empty())
    return Undefined{call.name == "first" ? "the first item of nothing" : "the last item of nothing"};
  return call.name == "first" ? items.front() : items.back();
}

Value filter_reverse(const FilterCall& call) {
  call.bound({});
  if (try_text(call.value) != nullptr)
    return slice_of(call.rendering, call.value, None{}, None{}, int64_t{-1});
  std::vector<Value> items = items_of(call.rendering, call.value);
  std::reverse(items.begin(), items.end());
  return call.rendering.list(std::move(items), ListKind::kGenerator);
}

Value filter_replace(const FilterCall& call) {
  const auto bound = call.bound({"old", "new", "count"});
  if (!bound[0] || !bound[1]) call.rendering.fail_value("the filter replace needs two texts");
  Arguments arguments{{as_text(call.rendering, *bound[0]), as_text(call.rendering, *bound[1])}, {}};
  if (bound[2] && !is<None>(*bound[2])) arguments.values.push_back(*bound[2]);
  return call_method(call.rendering, {as_text(call.rendering, call.value), "replace"}, arguments);
}

std::optional<double> try_parse_float(std::string_view text) {
  text = strip(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

/// Nothing for what is no number or infinite.
std::optional<int64_t> try_truncated(Rendering& rendering, double number) {
  if (!std::isfinite(number)) return std::nullopt;
  if (std::fabs(number) > 9.2e18) rendering.fail_unsupported("an integer of more than 64 bits");
  return static_cast<int64_t>(number);
}

Value filter_int(const FilterCall& call) {
  const auto bound = call.bound({"default"});
  require_defined(call.rendering, call.value);
  std::optional<int64_t> result;
  if (const std::string* text = try_text(call.value)) {
    std::string_view digits = strip(*text);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc::result_out_of_range)
      call.rendering.fail_unsupported("an integer of more than 64 bits");
    if (error == std::errc() && end == digits.data() + digits.size()) {
      result = number;
    } else if (const auto parsed = try_parse_float(*text)) {
      result = try_truncated(call.rendering, *parsed);
    }
  } else if (is<double>(call.value)) {
    result = try_truncated(call.rendering, to_double(call.value));
  } else if (is_number(call.value)) {
    result = to_integer(call.rendering, call.value, "the value");
  }
  if (result) return *result;
  return bound[0] ? *bound[0] : Value(int64_t{0});
}

Value filter_float(const FilterCall& call) {
  const auto bound = call.bound({"default"});
  require_defined(call.rendering, call.value);
  if (is_number(call.value)) return to_double(call.value);
  const std::string* text = try_text(call.value);
  const auto parsed = text != nullptr ? try_parse_float(*text) : std::nullopt;
  if (parsed) return *parsed;
  return bound[0] ? *bound[0] : Value(0.0);
}

Value filter_abs(const FilterCall& call) {
  call.bound({});
  require_defined(call.rendering, call.value);
  if (!is_number(call.value)) call.rendering.fail_value("the filter abs of {}", kind_name(call.value));
  if (is<bool>(call.value)) return to_integer(call.rendering, call.value, "the value");
  if (is<double>(call.value)) return std::fabs(to_double(call.value));
  return to_double(call.value) < 0 ? negative(call.rendering, call.value) : call.value;
}

Value filter_items(const FilterCall& call) {
  call.bound({});
  if (is<Undefined>(call.value)) return call.rendering.list({}, ListKind::kGenerator);
  if (try_dict(call.value) == nullptr)
    call.rendering.fail_value("the filter items of {}", kind_name(call.value));
  const Value view = call_method(call.rendering, {call.value, "items"}, {});
  return call.rendering.list(items_of(call.rendering, view), ListKind::kGenerator);
}

Value filter_dictsort(const FilterCall& call) {
  call.bound({});
  const Dict* dict = try_dict(call.value);
  if (dict == nullptr) call.rendering.fail_value("the filter dictsort of {}", kind_name(call.value));
  Rendering& r = call.rendering;
  std::vector<std::pair<Value, Value>> keyed;  // what is compared, and the item
  for (const auto& [key, value] : dict->entries) {
    const Value folded = try_text(key) != nullptr ? r.text(lower_case(r, *try_text(key))) : key;
    keyed.emplace_back(folded, r.list({key, value}, ListKind::kTuple));
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [&](const auto& a, const auto& b) { return order_of(r, a.first, b.first) < 0; });
  std::vector<Value> items;
  for (const auto& [key, item] : keyed) items.push_back(item);
  return r.list(std::move(items));
}

Value filter_tojson(const FilterCall& call) {
  // The filter of transformers: json.dumps without HTML's escapes.
  const auto bound = call.bound({"ensure_ascii", "indent", "separators", "sort_keys"});
  Rendering& r = call.rendering;
  JsonStyle style;
  style.ascii = bound[0] && is_true(*bound[0]);
  style.sort_keys = bound[3] && is_true(*bound[3]);
  if (bound[1] && !is<None>(*bound[1])) {
    const std::string* unit = try_text(*bound[1]);
    const int64_t width = unit == nullptr ? to_integer(r, *bound[1], "the indent of tojson") : 0;
    if (width > 100) r.fail_unsupported("so wide an indent of tojson");
    style.indent =
        unit != nullptr ? *unit : std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    style.between_items = ",";
  }
  if (bound[2] && !is<None>(*bound[2])) {
    const std::vector<Value> both = items_of(r, *bound[2]);
    if (both.size() != 2) r.fail_value("the separators of tojson are {} and not two", both.size());
    style.between_items = to_text(r, both[0], "a separator of tojson");
    style.behind_key = to_text(r, both[1], "a separator of tojson");
  }
  return r.text(json_of(r, call.value, style));
}

/// map('name', …) and map(attribute='name', default=…).
Value filter_map(const FilterCall& call) {
  Rendering& r = call.rendering;
  if (!is_true(call.value)) return r.list({}, ListKind::kGenerator);  // be it a number
  std::vector<Value> out;
  if (call.arguments.values.empty()) {
    const auto bound = bind_arguments(r, "the filter map", call.arguments, {"attribute", "default"});
    if (!bound[0]) r.fail_value("the filter map needs a filter or an attribute");
    for (const Value& item : items_of(r, call.value)) {
      Value found = attribute_path(r, item, *bound[0]);
      if (bound[1] && is<Undefined>(found)) found = *bound[1];
      out.push_back(found);
    }
    return r.list(std::move(out), ListKind::kGenerator);
  }
  const std::string& name = to_text(r, call.arguments.values.front(), "the filter of map");
  Arguments rest = call.arguments;
  rest.values.erase(rest.values.begin());
  for (const Value& item : items_of(r, call.value)) out.push_back(apply_filter(r, name, item, rest));
  return r.list(std::move(out), ListKind::kGenerator);
}

/// select, reject, selectattr, rejectattr.
Value filter_select(const FilterCall& call) {
  Rendering& r = call.rendering;
  if (!call.arguments.keywords.empty())
    r.fail_unsupported(fmt::format("the filter {} with named arguments", call.name));
  if (!is_true(call.value)) return r.list({}, ListKind::kGenerator);
  const bool by_attribute = call.name.ends_with("attr"), wanted = call.name.starts_with("select");
  std::vector<Value> arguments = call.arguments.values;
  std::optional<Value> attribute;
  if (by_attribute) {
    if (arguments.empty()) r.fail_value("the filter {} needs an attribute", call.name);
    attribute = arguments.front();
    arguments.erase(arguments.begin());
  }
  std::optional<std::string> test;
  if (!arguments.empty()) {
    test = to_text(r, arguments.front(), "the name of a test");
    arguments.erase(arguments.begin());
  }
  std::vector<Value> out;
  for (const Value& item : items_of(r, call.value)) {
    const Value value = attribute ? attribute_path(r, item, *attribute) : item;
    if ((test ? apply_test(r, *test, value, {arguments, {}}) : is_true(value)) == wanted) out.push_back(item);
  }
  return r.list(std::move(out), ListKind::kGenerator);
}

constexpr std::pair<std::string_view, Filter> kFilters[] = {
    {"abs", filter_abs},           {"capitalize", filter_text_case},
    {"count", filter_length},      {"d", filter_default},
    {"default", filter_default},   {"dictsort", filter_dictsort},
    {"first", filter_end},         {"float", filter_float},
    {"int", filter_int},           {"items", filter_items},
    {"join", filter_join},         {"last", filter_end},
    {"length", filter_length},     {"list", filter_list},
    {"lower", filter_text_case},   {"map", filter_map},
    {"reject", filter_select},     {"rejectattr", filter_select},
    {"replace", filter_replace},   {"reverse", filter_reverse},
    {"safe", filter_safe},         {"select", filter_select},
    {"selectattr", filter_select}, {"string", filter_string},
    {"title", filter_text_case},   {"tojson", filter_tojson},
    {"trim", filter_trim},         {"upper", filter_text_case},
};

}  // namespace

Value apply_filter(Rendering& rendering, std::string_view name, const Value& value,
                   const Arguments& arguments) {
  for (const auto& [known, filter] : kFilters)
    if (known == name) return filter({rendering, name, value, arguments});
  rendering.fail_unsupported(fmt::format("the filter {}", beginning(name)));
}

}  // namespace halftone::jinja
