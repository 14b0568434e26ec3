#include "text/template/text_forms.h"

#include <algorithm>
#include <cmath>

#include "text/template/operations.h"
#include "text/template/python_text.h"
#include "text/unicode.h"

namespace halftone::jinja {

namespace {

/// Text that grows within what the rendering may still take.
class Output {
 public:
  explicit Output(Rendering& rendering) : rendering_(rendering) {}
  Output& operator+=(std::string_view part) {
    rendering_.spend(1);
    rendering_.reserve(part.size());
    text_ += part;
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  Rendering& rendering_;
  std::string text_;
};

/// repr(text). Python spells out what cannot be printed, which for most characters beyond ASCII no table here says.
std::string quoted(Rendering& rendering, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos,
             has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    if (c.code == static_cast<char32_t>(quote) || c.code == '\\') {
      out += '\\';
      out += static_cast<char>(c.code);
    } else if (c.code == '\n' || c.code == '\r' || c.code == '\t') {
      out += c.code == '\n' ? "\\n" : c.code == '\r' ? "\\r" : "\\t";
    } else if (c.code < 0x20 || c.code == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c.code));
    } else if (c.code >= 0x80 && (char_classes()[c.code] & (kCharLetter | kCharNumber)) == 0) {
      rendering.fail_unsupported(fmt::format("a list or a mapping with the character U+{:04X} as text",
                                             static_cast<unsigned>(c.code)));
    } else {
      out += text.substr(at, c.length);
    }
    at += c.length;
  }
  return out + quote;
}

/// Numbers, booleans and None, as Python writes them.
std::optional<std::string> try_scalar(const Value& value) {
  if (is<None>(value)) return "None";
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return float_text(*number);
  return std::nullopt;
}

/// repr(value).
void write_repr(Rendering& rendering, const Value& value, Output& out, int depth) {
  if (depth > kMaxValueDepth) rendering.fail_unsupported("the text of values of such depth");
  if (const auto scalar = try_scalar(value)) {
    out += *scalar;
  } else if (const std::string* text = try_text(value)) {
    rendering.spend_on(text->size());
    out += quoted(rendering, *text);
  } else if (is<Undefined>(value)) {
    out += "Undefined";
  } else if (const List* list = try_list(value); list != nullptr && list->is_stored()) {
    const bool tuple = list->kind == ListKind::kTuple;
    out += tuple ? "(" : "[";
    for (size_t i = 0; i < list->items.size(); ++i) {
      if (i > 0) out += ", ";
      write_repr(rendering, list->items[i], out, depth + 1);
    }
    if (tuple && list->items.size() == 1) out += ",";
    out += tuple ? ")" : "]";
  } else if (const Dict* dict = try_dict(value)) {
    out += "{";
    for (size_t i = 0; i < dict->entries.size(); ++i) {
      if (i > 0) out += ", ";
      write_repr(rendering, dict->entries[i].first, out, depth + 1);
      out += ": ";
      write_repr(rendering, dict->entries[i].second, out, depth + 1);
    }
    out += "}";
  } else {
    rendering.fail_unsupported(fmt::format("the text of {}", kind_name(value)));
  }
}

class JsonWriter {
 public:
  JsonWriter(Rendering& rendering, const JsonStyle& style)
      : rendering_(rendering), style_(style), out_(rendering) {}

  std::string run(const Value& value) {
    write(value, 0);
    return out_.take();
  }

 private:
  void write(const Value& value, int depth) {
    if (depth > kMaxValueDepth) rendering_.fail_unsupported("JSON of such depth");
    if (const List* list = try_list(value); list != nullptr && list->is_stored())
      return write_list(*list, depth);
    if (const Dict* dict = try_dict(value)) return write_dict(*dict, depth);
    if (const std::string* text = try_text(value)) return write_text(*text);
    out_ += scalar(value);
  }

  std::string scalar(const Value& value) const {
    if (is<None>(value)) return "null";
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
    if (const auto* number = std::get_if<double>(&value)) {
      if (std::isnan(*number)) return "NaN";
      if (std::isinf(*number)) return *number > 0 ? "Infinity" : "-Infinity";
    }
    const auto text = try_scalar(value);
    if (!text) {
      require_defined(rendering_, value);
      rendering_.fail_value("{} is nothing that JSON can say", kind_name(value));
    }
    return *text;
  }

  void new_line(int depth) {
    if (!style_.indent) return;
    out_ += "\n";
    for (int i = 0; i < depth; ++i) out_ += *style_.indent;
  }

  void write_list(const List& list, int depth) {
    out_ += "[";
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_ += style_.between_items;
      new_line(depth + 1);
      write(list.items[i], depth + 1);
    }
    if (!list.items.empty()) new_line(depth);
    out_ += "]";
  }

  void write_dict(const Dict& dict, int depth) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [this](const auto* a, const auto* b) {
        return order_of(rendering_, a->first, b->first) < 0;
      });
    }
    out_ += "{";
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.between_items;
      new_line(depth + 1);
      const Value& key = entries[i]->first;
      write_text(try_text(key) != nullptr ? *try_text(key) : scalar(key));
      out_ += style_.behind_key;
      write(entries[i]->second, depth + 1);
    }
    if (!entries.empty()) new_line(depth);
    out_ += "}";
  }

  void write_text(const std::string& text) {
    rendering_.spend_on(text.size());
    std::string out = "\"";
    for (size_t at = 0; at < text.size();) {
      const Char c = char_at(text, at);
      constexpr std::string_view kNamed = "\"\\\n\r\t\f\b", kNames = "\"\\nrtfb";
      const size_t name = c.code < 0x80 ? kNamed.find(static_cast<char>(c.code)) : std::string_view::npos;
      if (name != std::string_view::npos) {
        out += '\\';
        out += kNames[name];
      } else if (c.code < 0x20 || (style_.ascii && c.code > 0x7E && c.code != 0x7F)) {
        escape(c.code, out);
      } else {
        out += text.substr(at, c.length);
      }
      at += c.length;
    }
    out_ += out + "\"";
  }

  static void escape(char32_t c, std::string& out) {
    const auto unit = [&](char32_t code) { out += fmt::format("\\u{:04x}", static_cast<unsigned>(code)); };
    if (c < 0x10000) return unit(c);
    unit(0xD800 + ((c - 0x10000) >> 10));
    unit(0xDC00 + ((c - 0x10000) & 0x3FF));
  }

  Rendering& rendering_;
  const JsonStyle& style_;
  Output out_;
};

}  // namespace

std::string text_of(Rendering& rendering, const Value& value) {
  if (const std::string* text = try_text(value)) {
    rendering.spend_on(text->size());
    return *text;
  }
  if (is<Undefined>(value)) return "";
  Output out(rendering);
  write_repr(rendering, value, out, 0);
  return out.take();
}

Value as_text(Rendering& rendering, const Value& value) {
  return try_text(value) != nullptr ? value : rendering.text(text_of(rendering, value));
}

std::string json_of(Rendering& rendering, const Value& value, const JsonStyle& style) {
  return JsonWriter(rendering, style).run(value);
}

}  // namespace halftone::jinja
