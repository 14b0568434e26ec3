#include "text/template/operations.h"

#include <cmath>

#include "base/checked.h"
#include "text/template/calls.h"
#include "text/template/python_text.h"
#include "text/unicode.h"

namespace halftone::jinja {

namespace {

/// What True, False and integers are in calculations; nothing for other values.
std::optional<int64_t> try_integer(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  return std::nullopt;
}

Value checked(Rendering& rendering, const std::optional<int64_t>& result) {
  if (!result) rendering.fail_unsupported("an integer of more than 64 bits");
  return *result;
}

std::optional<int64_t> integer_power(int64_t base, int64_t exponent) {
  std::optional<int64_t> result = 1;
  // Anything else than these overflows within 64 steps.
  if (base >= -1 && base <= 1) exponent = exponent == 0 ? 0 : base == -1 ? 2 - exponent % 2 : 1;
  for (; result && exponent > 0; --exponent) result = checked_mul(*result, base);
  return result;
}

Value calculate_floats(Rendering& rendering, std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**" && a < 0 && b != std::floor(b)) rendering.fail_unsupported("a complex number");
  if (b == 0 || (op == "**" && a == 0 && b < 0)) {
    if (op == "**" && b == 0) return 1.0;
    rendering.fail_value("division by zero");
  }
  if (op == "**") return std::pow(a, b);
  if (op == "/") return a / b;
  // As Python does it, with its rounding.
  double rest = std::fmod(a, b), quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (op == "%") return rest == 0 ? std::copysign(0.0, b) : rest;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double down = std::floor(quotient);
  return quotient - down > 0.5 ? down + 1 : down;
}

Value calculate_integers(Rendering& rendering, std::string_view op, int64_t a, int64_t b) {
  if (op == "+") return checked(rendering, checked_add(a, b));
  if (op == "-") return checked(rendering, checked_sub(a, b));
  if (op == "*") return checked(rendering, checked_mul(a, b));
  if (op == "**" && b >= 0) return checked(rendering, integer_power(a, b));
  if (op == "**") return calculate_floats(rendering, op, static_cast<double>(a), static_cast<double>(b));
  if (b == 0) rendering.fail_value("division by zero");
  if (op == "/") return static_cast<double>(a) / static_cast<double>(b);
  if (b == -1) return op == "//" ? checked(rendering, checked_sub<int64_t>(0, a)) : Value(int64_t{0});
  // Python rounds down.
  const int64_t rest = a % b, quotient = a / b;
  const bool down = rest != 0 && (rest < 0) != (b < 0);
  if (op == "//") return quotient - (down ? 1 : 0);
  return down ? rest + b : rest;
}

/// For HTML, as Python's package markupsafe does it.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    constexpr std::string_view kLetters = "&<>'\"";
    constexpr std::string_view kNames[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    const size_t found = kLetters.find(c);
    if (found == std::string_view::npos) {
      out += c;
    } else {
      out += kNames[found];
    }
  }
  return out;
}

Value repeated(Rendering& rendering, const std::string& text, int64_t count) {
  const auto times = static_cast<size_t>(std::max<int64_t>(count, 0));
  const auto bytes = checked_mul(times, text.size());
  if (!bytes) rendering.reserve(kMaxBytes + 1);  // fails
  rendering.reserve(*bytes);
  std::string out;
  out.reserve(*bytes);
  for (size_t i = 0; !text.empty() && i < times; ++i) out += text;
  return rendering.text(std::move(out));
}

Value index_of_items(const std::vector<Value>& items, int64_t index) {
  const auto count = static_cast<int64_t>(items.size());
  if (index < 0) index += count;
  if (index < 0 || index >= count) return Undefined{"an item beyond the end"};
  return items[static_cast<size_t>(index)];
}

Value index_of_text(Rendering& rendering, const std::string& text, int64_t index) {
  rendering.spend_on(text.size());
  const std::vector<size_t> starts = character_starts(text);
  const auto count = static_cast<int64_t>(starts.size()) - 1;
  if (index < 0) index += count;
  if (index < 0 || index >= count) return Undefined{"a character beyond the end"};
  const size_t begin = starts[static_cast<size_t>(index)];
  return rendering.text(text.substr(begin, starts[static_cast<size_t>(index) + 1] - begin));
}

/// The indices that a slice of `count` items takes, as Python's slice.indices().
std::vector<size_t> slice_indices(Rendering& rendering, int64_t count, const Value& begin, const Value& end,
                                  const Value& step) {
  const int64_t stride = is<None>(step) ? 1 : to_integer(rendering, step, "the step of a slice");
  if (stride == 0) rendering.fail_value("the step of a slice is 0");
  const int64_t lowest = stride < 0 ? -1 : 0, highest = stride < 0 ? count - 1 : count;
  const auto bound = [&](const Value& value, int64_t missing) {
    if (is<None>(value)) return missing;
    int64_t place = to_integer(rendering, value, "the bound of a slice");
    if (place < 0) place = std::max<int64_t>(place, -count - 1) + count;
    return std::clamp(place, lowest, highest);
  };
  const int64_t first = bound(begin, stride < 0 ? highest : lowest),
                last = bound(end, stride < 0 ? lowest : highest);
  std::vector<size_t> indices;
  for (std::optional<int64_t> i = first; i && (stride > 0 ? *i < last : *i > last);
       i = checked_add(*i, stride))
    indices.push_back(static_cast<size_t>(*i));
  return indices;
}

}  // namespace

void require_defined(Rendering& rendering, const Value& value) {
  if (const auto* undefined = std::get_if<Undefined>(&value))
    rendering.fail_value("{} is undefined", beginning(undefined->name, 200));
}

void require_key(Rendering& rendering, const Value& value) {
  const List* list = try_list(value);
  if (try_dict(value) != nullptr || (list != nullptr && list->kind != ListKind::kTuple))
    rendering.fail_value("{} cannot be a key", kind_name(value));
}

bool is_true(const Value& value) {
  if (is<Undefined>(value) || is<None>(value)) return false;
  if (is_number(value)) return to_double(value) != 0;
  if (const std::string* text = try_text(value)) return !text->empty();
  if (const List* list = try_list(value)) return list->kind == ListKind::kGenerator || !list->items.empty();
  if (const Dict* dict = try_dict(value)) return !dict->entries.empty();
  return true;
}

bool is_number(const Value& value) {
  return is<bool>(value) || is<int64_t>(value) || is<double>(value);
}

double to_double(const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return static_cast<double>(try_integer(value).value_or(0));
}

int64_t to_integer(Rendering& rendering, const Value& value, std::string_view what) {
  const auto integer = try_integer(value);
  if (!integer) rendering.fail_value("{} is {}, not an integer", what, kind_name(value));
  return *integer;
}

bool is_equal(Rendering& rendering, const Value& a, const Value& b, int depth) {
  rendering.spend(1);
  if (depth > kMaxValueDepth) rendering.fail_unsupported("comparing values of such depth");
  if (is_number(a) && is_number(b)) {
    const auto left = try_integer(a), right = try_integer(b);
    return left && right ? *left == *right : to_double(a) == to_double(b);
  }
  if (a.index() != b.index()) return false;
  if (is<Undefined>(a) || is<None>(a)) return true;
  if (const std::string* text = try_text(a)) {
    rendering.spend_on(std::min(text->size(), try_text(b)->size()));
    return *text == *try_text(b);
  }
  if (const List* left = try_list(a)) {
    const List* right = try_list(b);
    if (!left->is_stored()) rendering.fail_unsupported(fmt::format("comparing {}", kind_name(a)));
    if (left->kind != right->kind || left->items.size() != right->items.size()) return false;
    for (size_t i = 0; i < left->items.size(); ++i)
      if (!is_equal(rendering, left->items[i], right->items[i], depth + 1)) return false;
    return true;
  }
  if (const Dict* left = try_dict(a)) {
    const Dict* right = try_dict(b);
    if (left->entries.size() != right->entries.size()) return false;
    for (const auto& [key, value] : left->entries) {
      const Value* other = try_entry(rendering, *right, key);
      if (other == nullptr || !is_equal(rendering, value, *other, depth + 1)) return false;
    }
    return true;
  }
  if (const auto* space = std::get_if<Namespace*>(&a)) return *space == std::get<Namespace*>(b);
  if (const auto* macro = std::get_if<const Macro*>(&a)) return *macro == std::get<const Macro*>(b);
  rendering.fail_unsupported(fmt::format("comparing {}", kind_name(a)));
}

int order_of(Rendering& rendering, const Value& a, const Value& b) {
  require_defined(rendering, a);
  require_defined(rendering, b);
  if (is_number(a) && is_number(b)) {
    const double left = to_double(a), right = to_double(b);
    const auto exact_left = try_integer(a), exact_right = try_integer(b);
    if (exact_left && exact_right)
      return *exact_left < *exact_right ? -1 : *exact_left > *exact_right ? 1 : 0;
    if (std::isnan(left) || std::isnan(right)) rendering.fail_unsupported("comparing what is not a number");
    return left < right ? -1 : left > right ? 1 : 0;
  }
  if (try_text(a) != nullptr && try_text(b) != nullptr) {
    rendering.spend_on(std::min(try_text(a)->size(), try_text(b)->size()));
    return try_text(a)->compare(*try_text(b));  // bytes of UTF-8 are in the order of code points
  }
  if (try_list(a) != nullptr && try_list(b) != nullptr) rendering.fail_unsupported("ordering lists");
  rendering.fail_value("{} and {} have no order", kind_name(a), kind_name(b));
}

bool contains(Rendering& rendering, const Value& container, const Value& item) {
  if (const std::string* text = try_text(container)) {
    require_defined(rendering, item);
    const std::string* part = try_text(item);
    if (part == nullptr) rendering.fail_value("{} cannot be in a text", kind_name(item));
    rendering.spend_on(text->size());
    return find_text(*text, *part) != std::string_view::npos;
  }
  if (const Dict* dict = try_dict(container)) {
    require_key(rendering, item);
    return try_entry(rendering, *dict, item) != nullptr;
  }
  for (const Value& each : items_of(rendering, container))
    if (is_equal(rendering, each, item)) return true;
  return false;
}

Value calculate(Rendering& rendering, std::string_view op, const Value& a, const Value& b) {
  if (op == "%" && try_text(a) != nullptr) rendering.fail_unsupported("the operator % of a text");
  require_defined(rendering, a);
  require_defined(rendering, b);
  if (is_number(a) && is_number(b)) {
    const auto left = try_integer(a), right = try_integer(b);
    return left && right ? calculate_integers(rendering, op, *left, *right)
                         : calculate_floats(rendering, op, to_double(a), to_double(b));
  }
  const std::string *left_text = try_text(a), *right_text = try_text(b);
  if (op == "+" && left_text != nullptr && right_text != nullptr) {
    rendering.reserve(left_text->size() + right_text->size());  // before it is there
    const bool left_safe = rendering.is_safe(a), right_safe = rendering.is_safe(b);
    if (left_safe || right_safe) {
      rendering.reserve(5 * (left_text->size() + right_text->size()));
      return rendering.safe_text((left_safe ? *left_text : escaped(*left_text)) +
                                 (right_safe ? *right_text : escaped(*right_text)));
    }
    return rendering.text(*left_text + *right_text);
  }
  const List *left_list = try_list(a), *right_list = try_list(b);
  if (op == "+" && left_list != nullptr && right_list != nullptr && left_list->kind == right_list->kind &&
      left_list->is_stored()) {
    rendering.reserve(sizeof(Value) * (left_list->items.size() + right_list->items.size()));
    std::vector<Value> items = left_list->items;
    items.insert(items.end(), right_list->items.begin(), right_list->items.end());
    return rendering.list(std::move(items), left_list->kind);
  }
  if (op == "*" && left_text != nullptr && try_integer(b))
    return repeated(rendering, *left_text, *try_integer(b));
  if (op == "*" && right_text != nullptr && try_integer(a))
    return repeated(rendering, *right_text, *try_integer(a));
  if (op == "*" && (left_list != nullptr || right_list != nullptr))
    rendering.fail_unsupported(fmt::format("the operator {} of {} and {}", op, kind_name(a), kind_name(b)));
  rendering.fail_value("{} {} {} is not defined", kind_name(a), op, kind_name(b));
}

Value negative(Rendering& rendering, const Value& value) {
  require_defined(rendering, value);
  if (!is_number(value)) rendering.fail_value("there is no negative of {}", kind_name(value));
  if (is<double>(value)) return -to_double(value);
  return calculate_integers(rendering, "-", 0, *try_integer(value));
}

const Value* try_entry(Rendering& rendering, const Dict& dict, const Value& key) {
  for (const auto& [name, value] : dict.entries)
    if (is_equal(rendering, name, key)) return &value;
  return nullptr;
}

Value attribute_of(Rendering& rendering, const Value& value, std::string_view name) {
  require_defined(rendering, value);
  if (name.starts_with("__")) rendering.fail_unsupported(fmt::format("the attribute {}", name));
  if (const auto* space = std::get_if<Namespace*>(&value)) {
    rendering.spend((*space)->names.size() / 8 + 1);
    for (const auto& [each, content] : (*space)->names)
      if (each == name) return content;
    return Undefined{name};
  }
  if (auto* const* loop = std::get_if<Loop*>(&value)) return loop_attribute(rendering, **loop, name);
  if (has_method(rendering, value, name)) return rendering.method(value, name);
  if (const Dict* dict = try_dict(value)) {
    const std::string key(name);
    if (const Value* found = try_entry(rendering, *dict, &key)) return *found;
  }
  return Undefined{name};
}

Value item_of(Rendering& rendering, const Value& value, const Value& key) {
  require_defined(rendering, value);
  if (const Dict* dict = try_dict(value)) {
    if (const Value* found = try_entry(rendering, *dict, key)) return *found;
  }
  const auto index = try_integer(key);
  if (index && try_list(value) != nullptr && try_list(value)->is_stored())
    return index_of_items(try_list(value)->items, *index);
  if (index && try_text(value) != nullptr) return index_of_text(rendering, *try_text(value), *index);
  const std::string* name = try_text(key);
  if (name == nullptr) return Undefined{"an item"};
  if (name->starts_with("__")) rendering.fail_unsupported(fmt::format("the attribute {}", beginning(*name)));
  if (is<Namespace*>(value) || is<Loop*>(value)) return attribute_of(rendering, value, *name);
  if (has_method(rendering, value, *name)) return rendering.method(value, *name);
  return Undefined{*name};
}

Value slice_of(Rendering& rendering, const Value& value, const Value& begin, const Value& end,
               const Value& step) {
  require_defined(rendering, value);
  for (const Value& each : {begin, end, step}) require_defined(rendering, each);
  if (const List* list = try_list(value); list != nullptr && list->is_stored()) {
    rendering.spend_on(sizeof(Value) * list->items.size());
    std::vector<Value> items;
    for (const size_t i :
         slice_indices(rendering, static_cast<int64_t>(list->items.size()), begin, end, step))
      items.push_back(list->items[i]);
    return rendering.list(std::move(items), list->kind);
  }
  const std::string* text = try_text(value);
  if (text == nullptr) rendering.fail_value("{} has no slices", kind_name(value));
  rendering.reserve(text->size());
  const std::vector<size_t> starts = character_starts(*text);
  std::string out;
  for (const size_t i : slice_indices(rendering, static_cast<int64_t>(starts.size()) - 1, begin, end, step))
    out += std::string_view(*text).substr(starts[i], starts[i + 1] - starts[i]);
  return rendering.text(std::move(out));
}

std::vector<Value> items_of(Rendering& rendering, const Value& value) {
  if (is<Undefined>(value)) return {};
  if (const List* list = try_list(value)) {
    rendering.spend_on(sizeof(Value) * list->items.size());
    return list->items;
  }
  std::vector<Value> items;
  if (const Dict* dict = try_dict(value)) {
    rendering.spend_on(sizeof(Value) * dict->entries.size());
    for (const auto& [key, entry] : dict->entries) items.push_back(key);
    return items;
  }
  const std::string* text = try_text(value);
  if (text == nullptr) rendering.fail_value("{} cannot be iterated over", kind_name(value));
  for (size_t at = 0; at < text->size();) {
    const size_t length = char_at(*text, at).length;
    items.push_back(rendering.text(text->substr(at, length)));
    at += length;
  }
  return items;
}

}  // namespace halftone::jinja
