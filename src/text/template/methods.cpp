// The methods of texts and mappings: value.name(arguments).
#include <algorithm>

#include "text/template/calls.h"
#include "text/template/letter_case.h"
#include "text/template/operations.h"
#include "text/template/python_text.h"
#include "text/unicode.h"

namespace halftone::jinja {

namespace {

struct MethodCall {
  Rendering& rendering;
  std::string_view name;
  const std::string& text;
  const Arguments& arguments;

  std::vector<std::optional<Value>> bound(std::initializer_list<std::string_view> parameters) const {
    return bind_arguments(rendering, fmt::format("the method {}", name), arguments, parameters);
  }
  /// The first argument, which must be there.
  const std::string& first_text(const std::vector<std::optional<Value>>& bound) const {
    if (!bound[0]) rendering.fail_value("the method {} needs an argument", name);
    return to_text(rendering, *bound[0], fmt::format("the argument of {}", name));
  }
};

using TextMethod = Value (*)(const MethodCall&);

bool is_none_or_missing(const std::optional<Value>& value) {
  return !value || is<None>(*value);
}

Value method_strip(const MethodCall& call) {
  const auto bound = call.bound({"chars"});
  Rendering& r = call.rendering;
  const bool left = call.name != "rstrip", right = call.name != "lstrip";
  std::string_view text = call.text;
  r.spend_on(text.size());
  if (is_none_or_missing(bound[0])) {
    if (left) text = strip_left(text);
    if (right) text = strip_right(text);
    return r.text(std::string(text));
  }
  const std::string& characters = call.first_text(bound);
  r.spend_on(characters.size());
  const std::vector<size_t> starts = character_starts(text);
  size_t begin = 0, end = starts.size() - 1;
  const auto is_one_of_them = [&](size_t i) {
    r.spend_on(characters.size());
    return characters.find(text.substr(starts[i], starts[i + 1] - starts[i])) != std::string::npos;
  };
  while (left && begin < end && is_one_of_them(begin)) ++begin;
  while (right && begin < end && is_one_of_them(end - 1)) --end;
  return r.text(std::string(text.substr(starts[begin], starts[end] - starts[begin])));
}

/// Words between white space; at most `limit` cuts, from the right with `from_right`. The rest keeps its white space inside.
std::vector<std::string_view> words_of(std::string_view text, int64_t limit, bool from_right) {
  std::vector<std::string_view> words;
  for (text = from_right ? strip_right(text) : strip_left(text); !text.empty();) {
    if (limit >= 0 && std::cmp_equal(words.size(), limit)) {
      words.push_back(text);
      break;
    }
    size_t length = 0;
    if (from_right) {
      size_t begin = text.size();
      while (begin > 0) {
        const std::string_view before = strip_right(text.substr(0, begin));
        if (before.size() < begin) break;
        do {
          --begin;
        } while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80);
      }
      words.push_back(text.substr(begin));
      text = strip_right(text.substr(0, begin));
      continue;
    }
    while (length < text.size() && !is_space(char_at(text, length).code))
      length += char_at(text, length).length;
    words.push_back(text.substr(0, length));
    text = strip_left(text.substr(length));
  }
  if (from_right) std::reverse(words.begin(), words.end());
  return words;
}

std::vector<std::string_view> parts_of(std::string_view text, std::string_view separator, int64_t limit,
                                       bool from_right) {
  std::vector<std::string_view> parts;
  while (limit < 0 || std::cmp_less(parts.size(), limit)) {
    const size_t found = from_right ? text.rfind(separator) : find_text(text, separator);
    if (found == std::string_view::npos) break;
    parts.push_back(from_right ? text.substr(found + separator.size()) : text.substr(0, found));
    text = from_right ? text.substr(0, found) : text.substr(found + separator.size());
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

Value method_split(const MethodCall& call) {
  const auto bound = call.bound({"sep", "maxsplit"});
  Rendering& r = call.rendering;
  const int64_t limit = bound[1] ? to_integer(r, *bound[1], "maxsplit") : -1;
  const bool from_right = call.name == "rsplit";
  std::vector<std::string_view> parts;
  r.spend_on(call.text.size());
  if (is_none_or_missing(bound[0])) {
    parts = words_of(call.text, limit, from_right);
  } else {
    const std::string& separator = call.first_text(bound);
    if (separator.empty()) r.fail_value("the separator of {} is empty", call.name);
    // From the right, a search may compare the separator at every place.
    if (from_right) r.spend_on(call.text.size() * std::min<size_t>(separator.size(), 4096));
    parts = parts_of(call.text, separator, limit, from_right);
  }
  std::vector<Value> items;
  for (const std::string_view part : parts) items.push_back(r.text(std::string(part)));
  return r.list(std::move(items));
}

Value method_splitlines(const MethodCall& call) {
  call.bound({});
  Rendering& r = call.rendering;
  std::vector<Value> lines;
  std::string_view text = call.text;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    const bool ends = (c.code >= 0x0A && c.code <= 0x0D) || (c.code >= 0x1C && c.code <= 0x1E) ||
                      c.code == 0x85 || c.code == 0x2028 || c.code == 0x2029;
    if (ends) lines.push_back(r.text(std::string(text.substr(begin, at - begin))));
    at += c.length;
    if (c.code == '\r' && at < text.size() && text[at] == '\n') ++at;
    if (ends) begin = at;
  }
  if (begin < text.size()) lines.push_back(r.text(std::string(text.substr(begin))));
  r.spend_on(text.size());
  return r.list(std::move(lines));
}

Value method_affix(const MethodCall& call) {
  const auto bound = call.bound({"affix"});
  const bool at_start = call.name == "startswith";
  const auto matches = [&](const std::string& affix) {
    return at_start ? call.text.starts_with(affix) : call.text.ends_with(affix);
  };
  const List* several = bound[0] ? try_list(*bound[0]) : nullptr;
  if (several == nullptr || several->kind != ListKind::kTuple) return matches(call.first_text(bound));
  bool found = false;
  for (const Value& each : several->items)
    found = matches(to_text(call.rendering, each, "an affix")) || found;
  return found;
}

Value method_remove_affix(const MethodCall& call) {
  const std::string& affix = call.first_text(call.bound({"affix"}));
  std::string_view text = call.text;
  if (call.name == "removeprefix" && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (call.name == "removesuffix" && text.ends_with(affix)) text.remove_suffix(affix.size());
  return call.rendering.text(std::string(text));
}

Value method_replace(const MethodCall& call) {
  const auto bound = call.bound({"old", "new", "count"});
  Rendering& r = call.rendering;
  if (!bound[0] || !bound[1]) r.fail_value("the method replace needs two texts");
  const std::string& old = call.first_text(bound);
  const std::string& fresh = to_text(r, *bound[1], "the argument of replace");
  int64_t left = bound[2] ? to_integer(r, *bound[2], "the count of replace") : -1;
  r.spend_on(call.text.size());
  std::string out;
  const auto put = [&](std::string_view part) {
    r.reserve(part.size());
    out += part;
  };
  size_t at = 0;
  while (left != 0) {
    const size_t found = find_text(call.text, old, at);
    if (found == std::string::npos) break;
    put(std::string_view(call.text).substr(at, found - at));
    put(fresh);
    at = found + old.size();
    --left;
    if (!old.empty()) continue;
    // An empty text is before every character and at the end.
    if (at == call.text.size()) break;
    const size_t length = char_at(call.text, at).length;
    if (left != 0) {
      put(std::string_view(call.text).substr(at, length));
      at += length;
    }
  }
  put(std::string_view(call.text).substr(at));
  return r.text(std::move(out));
}

Value method_case(const MethodCall& call) {
  call.bound({});
  Rendering& r = call.rendering;
  if (call.name == "upper") return r.text(upper_case(r, call.text));
  if (call.name == "lower") return r.text(lower_case(r, call.text));
  if (call.name == "capitalize") return r.text(capitalized(r, call.text));
  return r.text(title_case(r, call.text, true));
}

Value method_find(const MethodCall& call) {
  const std::string& part = call.first_text(call.bound({"sub"}));
  Rendering& r = call.rendering;
  const bool from_right = call.name == "rfind";
  r.spend_on(call.text.size() * (from_right ? std::min<size_t>(part.size() + 1, 4096) : 1));
  const size_t found = from_right ? call.text.rfind(part) : find_text(call.text, part);
  if (found == std::string::npos) return int64_t{-1};
  return static_cast<int64_t>(length_of(std::string_view(call.text).substr(0, found)));
}

Value method_count(const MethodCall& call) {
  const std::string& part = call.first_text(call.bound({"sub"}));
  call.rendering.spend_on(call.text.size());
  if (part.empty()) return static_cast<int64_t>(length_of(call.text)) + 1;
  int64_t count = 0;
  for (size_t at = find_text(call.text, part); at != std::string::npos;
       at = find_text(call.text, part, at + part.size()))
    ++count;
  return count;
}

Value method_join(const MethodCall& call) {
  const auto bound = call.bound({"iterable"});
  if (!bound[0]) call.rendering.fail_value("the method join needs an argument");
  std::string out;
  bool first = true;
  for (const Value& item : items_of(call.rendering, *bound[0])) {
    const std::string& part = to_text(call.rendering, item, "what join takes");
    call.rendering.reserve(part.size() + call.text.size());
    if (!std::exchange(first, false)) out += call.text;
    out += part;
  }
  return call.rendering.text(std::move(out));
}

constexpr std::pair<std::string_view, TextMethod> kTextMethods[] = {
    {"capitalize", method_case},
    {"count", method_count},
    {"endswith", method_affix},
    {"find", method_find},
    {"join", method_join},
    {"lower", method_case},
    {"lstrip", method_strip},
    {"removeprefix", method_remove_affix},
    {"removesuffix", method_remove_affix},
    {"replace", method_replace},
    {"rfind", method_find},
    {"rsplit", method_split},
    {"rstrip", method_strip},
    {"split", method_split},
    {"splitlines", method_splitlines},
    {"startswith", method_affix},
    {"strip", method_strip},
    {"title", method_case},
    {"upper", method_case},
};

constexpr std::string_view kDictMethods[] = {"get", "items", "keys", "values"};

// Attributes that these types have in Python beside the methods above. A template that asks for one would get something there.
constexpr std::string_view kOtherTextMethods[] = {
    "casefold",  "center",      "encode",  "expandtabs", "format",   "format_map",   "index",
    "isalnum",   "isalpha",     "isascii", "isdecimal",  "isdigit",  "isidentifier", "islower",
    "isnumeric", "isprintable", "isspace", "istitle",    "isupper",  "ljust",        "maketrans",
    "partition", "rindex",      "rjust",   "rpartition", "swapcase", "translate",    "zfill"};
constexpr std::string_view kOtherDictMethods[] = {"clear",   "copy",       "fromkeys", "pop",
                                                  "popitem", "setdefault", "update"};
constexpr std::string_view kListMethods[] = {"append", "clear", "copy",   "count",   "extend", "index",
                                             "insert", "pop",   "remove", "reverse", "sort"};
constexpr std::string_view kNumberMethods[] = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
    "from_bytes",       "fromhex",   "hex",        "imag",      "is_integer",
    "numerator",        "real",      "to_bytes"};

template <size_t kCount>
bool has(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

const TextMethod* try_text_method(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTextMethods), std::end(kTextMethods),
                                   [&](const auto& entry) { return entry.first == name; });
  return found == std::end(kTextMethods) ? nullptr : &found->second;
}

Value call_dict_method(Rendering& r, const Dict& dict, std::string_view name, const Arguments& arguments) {
  if (name == "get") {
    const auto bound = bind_arguments(r, "the method get", arguments, {"key", "default"});
    if (!bound[0]) r.fail_value("the method get needs a key");
    require_key(r, *bound[0]);
    const Value* found = try_entry(r, dict, *bound[0]);
    return found != nullptr ? *found : bound[1].value_or(None{});
  }
  bind_arguments(r, fmt::format("the method {}", name), arguments, {});
  std::vector<Value> items;
  for (const auto& [key, value] : dict.entries) {
    r.spend(1);
    items.push_back(name == "keys" ? key : name == "values" ? value : r.list({key, value}, ListKind::kTuple));
  }
  return r.list(std::move(items), ListKind::kView);
}

/// loop.cycle(a, b, …).
Value cycle(Rendering& r, const Loop& loop, const Arguments& arguments) {
  if (arguments.values.empty() || !arguments.keywords.empty()) r.fail_value("loop.cycle() needs values");
  return arguments.values[static_cast<size_t>(loop.index0) % arguments.values.size()];
}

}  // namespace

bool has_method(Rendering& rendering, const Value& value, std::string_view name) {
  const auto refuse = [&](const auto& unsupported) {
    if (has(unsupported, name))
      rendering.fail_unsupported(fmt::format("the method {} of {}", name, kind_name(value)));
    return false;
  };
  if (try_text(value) != nullptr) return try_text_method(name) != nullptr || refuse(kOtherTextMethods);
  if (try_dict(value) != nullptr) return has(kDictMethods, name) || refuse(kOtherDictMethods);
  if (try_list(value) != nullptr) return refuse(kListMethods);
  return is_number(value) ? refuse(kNumberMethods) : false;
}

Value call_method(Rendering& rendering, const Method& method, const Arguments& arguments) {
  if (const auto* loop = std::get_if<Loop*>(&method.self)) return cycle(rendering, **loop, arguments);
  if (const Dict* dict = try_dict(method.self))
    return call_dict_method(rendering, *dict, method.name, arguments);
  const std::string* text = try_text(method.self);
  if (rendering.is_safe(method.self))
    rendering.fail_unsupported(fmt::format("the method {} of a text that safe has marked", method.name));
  return (*try_text_method(method.name))({rendering, method.name, *text, arguments});
}

}  // namespace halftone::jinja
