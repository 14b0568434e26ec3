#include "text/template/lexer.h"

#include <array>

#include "base/errors.h"
#include "text/template/python_text.h"
#include "text/unicode.h"

namespace halftone::jinja {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// \r\n and \r are \n, and a newline at the very end does not count.
std::string normalized(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    out += text[i] == '\r' ? '\n' : text[i];
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view text, std::string_view name)
      : name_(name), source_(normalized(text)), text_(source_) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      const size_t tag = next_tag();
      if (tag == std::string_view::npos) {
        add(TokenKind::kData, text_.substr(at_));
        go_to(text_.size());
      } else if (text_[tag + 1] == '#') {
        data_until(tag, true);
        comment();
      } else if (text_[tag + 1] == '{') {
        data_until(tag, false);
        add(TokenKind::kOutputBegin, "");
        tag_body("}}", TokenKind::kOutputEnd);
      } else if (const size_t end = raw_begin(tag); end != std::string_view::npos) {
        data_until(tag, true);
        go_to(end);
        raw();
      } else {
        data_until(tag, true);
        add(TokenKind::kBlockBegin, "");
        tag_body("%}", TokenKind::kBlockEnd);
      }
    }
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail_here(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::kCorruptFile, "{}: line {}: {}", name_, line_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  void add(TokenKind kind, std::string_view text) {
    if (kind == TokenKind::kData && text.empty()) return;
    tokens_.push_back({kind, line_, std::string(text)});
  }

  /// Every move forward goes through here. What a match ends with says whether the next tag begins its line.
  void go_to(size_t place) {
    for (size_t i = at_; i < place; ++i) line_ += text_[i] == '\n' ? 1 : 0;
    if (place > at_) line_starting_ = text_[place - 1] == '\n';
    at_ = place;
  }

  bool is_at(size_t place, std::string_view part) const { return text_.substr(place).starts_with(part); }

  size_t past_space(size_t place) const { return text_.size() - strip_left(text_.substr(place)).size(); }

  size_t next_tag() const {
    for (size_t i = text_.find('{', at_); i != std::string_view::npos && i + 1 < text_.size();
         i = text_.find('{', i + 1)) {
      const char second = text_[i + 1];
      if (second == '%' || second == '{' || second == '#') return i;
    }
    return std::string_view::npos;
  }

  /// The data before a tag, without what the tag's sign and lstrip_blocks take away; goes behind the tag's sign.
  void data_until(size_t tag, bool lstrip) {
    const size_t sign = tag + 2;
    add(TokenKind::kData, trimmed_data(text_.substr(at_, tag - at_), sign, lstrip));
    const bool has_sign = sign < text_.size() && (text_[sign] == '-' || text_[sign] == '+');
    go_to(has_sign ? sign + 1 : sign);
  }

  std::string_view trimmed_data(std::string_view data, size_t sign, bool lstrip) const {
    const char first = sign < text_.size() ? text_[sign] : ' ';
    if (first == '-') return strip_right(data);
    if (first == '+' || !lstrip) return data;
    const size_t newline = data.rfind('\n');
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    if (line == 0 && !line_starting_) return data;
    return strip_left(data.substr(line)).empty() ? data.substr(0, line) : data;
  }

  /// Where the tag's end is, and what it takes after itself: "-%}" all white space, "%}" one newline, "+%}" nothing.
  size_t past_end(size_t place, std::string_view end) const {
    const bool is_output = end == "}}";
    if (is_at(place, end)) {
      const size_t after = place + end.size();
      return !is_output && is_at(after, "\n") ? after + 1 : after;
    }
    if (place < text_.size() && is_at(place + 1, end)) {
      if (text_[place] == '-') return past_space(place + 1 + end.size());
      if (text_[place] == '+' && !is_output) return place + 1 + end.size();
    }
    return std::string_view::npos;
  }

  void comment() {
    const size_t end = text_.find("#}", at_);
    if (end == std::string_view::npos) fail_here("a comment has no end, \"#}}\"");
    const bool has_sign = end > at_ && (text_[end - 1] == '-' || text_[end - 1] == '+');
    go_to(past_end(has_sign ? end - 1 : end, "#}"));
  }

  /// Behind {% raw %} if that is what stands here.
  size_t raw_begin(size_t tag) const {
    size_t place = tag + 2;
    if (place < text_.size() && (text_[place] == '-' || text_[place] == '+')) ++place;
    place = past_space(place);
    if (!is_at(place, "raw")) return std::string_view::npos;
    place = past_space(place + 3);
    if (is_at(place, "-%}")) return past_space(place + 3);
    return is_at(place, "%}") ? place + 2 : std::string_view::npos;
  }

  void raw() {
    for (size_t tag = text_.find("{%", at_); tag != std::string_view::npos; tag = text_.find("{%", tag + 1)) {
      size_t place = tag + 2;
      if (place < text_.size() && (text_[place] == '-' || text_[place] == '+')) ++place;
      place = past_space(place);
      if (!is_at(place, "endraw")) continue;
      const size_t end = past_end(past_space(place + 6), "%}");
      if (end == std::string_view::npos) continue;
      add(TokenKind::kData, trimmed_data(text_.substr(at_, tag - at_), tag + 2, true));
      go_to(end);
      return;
    }
    fail_here("{{% raw %}} has no end");
  }

  /// The tokens of a tag up to its end, which does not count within brackets.
  void tag_body(std::string_view end, TokenKind end_kind) {
    std::string open;  // the closing brackets that are awaited
    const int line = line_;
    while (at_ < text_.size()) {
      if (open.empty()) {
        const size_t after = past_end(at_, end);
        if (after != std::string_view::npos) {
          add(end_kind, "");
          return go_to(after);
        }
      }
      if (const size_t after = past_space(at_); after > at_) {
        go_to(after);
      } else if (is_digit(text_[at_])) {
        number();
      } else if (is_word(text_[at_])) {
        size_t after_word = at_;
        while (after_word < text_.size() && is_word(text_[after_word])) ++after_word;
        add(TokenKind::kName, text_.substr(at_, after_word - at_));
        go_to(after_word);
      } else if (text_[at_] == '"' || text_[at_] == '\'') {
        string();
      } else {
        operation(open);
      }
    }
    line_ = line;
    fail_here("a tag has no end, \"{}\"", end);
  }

  size_t past_digits(size_t place) const {
    while (place < text_.size() &&
           (is_digit(text_[place]) || (text_[place] == '_' && place + 1 < text_.size() &&
                                       is_digit(text_[place + 1]) && is_digit(text_[place - 1]))))
      ++place;
    return place;
  }

  void number() {
    size_t end = past_digits(at_);
    bool is_float = false;
    const bool after_dot = at_ > 0 && text_[at_ - 1] == '.';  // a.1.5: two items
    if (!after_dot && end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) {
      is_float = true;
      end = past_digits(end + 1);
    }
    if (!after_dot && end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && is_digit(text_[exponent])) {
        is_float = true;
        end = past_digits(exponent);
      }
    }
    std::string digits;
    for (const char c : text_.substr(at_, end - at_))
      if (c != '_') digits += c;
    if (end < text_.size() && is_word(text_[end]))
      fail_here("\"{}\" is no number", text_.substr(at_, std::min<size_t>(end + 1 - at_, 40)));
    add(is_float ? TokenKind::kFloat : TokenKind::kInteger, digits);
    go_to(end);
  }

  void string() {
    const char quote = text_[at_];
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) fail_here("a text has no end, {}", quote);
    add(TokenKind::kString, unescaped(text_.substr(at_ + 1, end - at_ - 1)));
    go_to(end + 1);
  }

  /// As Python's unicode-escape. What it does not know stays as it is.
  std::string unescaped(std::string_view text) const {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\' || i + 1 == text.size()) {
        out += text[i];
        continue;
      }
      const char kind = text[++i];
      constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
      if (const size_t letter = kLetters.find(kind); letter != std::string_view::npos) {
        out += kMeanings[letter];
      } else if (kind == '\n') {
        continue;
      } else if (kind == 'x' || kind == 'u' || kind == 'U') {
        const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
        append_utf8(code_of(text.substr(i + 1, digits), digits), out);
        i += digits;
      } else if (kind == 'N' || (kind >= '0' && kind <= '7') || static_cast<unsigned char>(kind) >= 0x80) {
        fail(ErrorCode::kUnsupported, "{}: line {}: the escape \\{} is not supported", name_, line_,
             static_cast<unsigned char>(kind) < 0x80 ? kind : '?');
      } else {
        out += '\\';
        out += kind;
      }
    }
    return out;
  }

  char32_t code_of(std::string_view digits, size_t count) const {
    char32_t code = 0;
    for (const char c : digits) {
      const size_t value =
          std::string_view("0123456789abcdef").find(static_cast<char>(c >= 'A' && c <= 'F' ? c + 32 : c));
      if (value == std::string_view::npos) count = 0;
      code = code * 16 + static_cast<char32_t>(value);
    }
    if (digits.size() != count || count == 0) fail_here("an escape needs hexadecimal digits");
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) fail_here("an escape is no character");
    return code;
  }

  void operation(std::string& open) {
    constexpr std::array<std::string_view, 6> kPairs = {"**", "//", "==", "!=", ">=", "<="};
    std::string_view found = text_.substr(at_, 1);
    for (const std::string_view pair : kPairs)
      if (is_at(at_, pair)) found = pair;
    if (found.size() == 1 &&
        std::string_view("+-*/%~[](){}<>=.:|,;").find(found[0]) == std::string_view::npos)
      fail_here("\"{}\" is not expected in a tag", text_.substr(at_, char_at(text_, at_).length));
    if (found == "(" || found == "[" || found == "{") open += found == "(" ? ')' : found == "[" ? ']' : '}';
    if (found == ")" || found == "]" || found == "}") {
      if (open.empty()) fail_here("\"{}\" closes nothing", found);
      if (open.back() != found[0]) fail_here("\"{}\" stands where \"{}\" was expected", found, open.back());
      open.pop_back();
    }
    add(TokenKind::kOperator, found);
    go_to(at_ + found.size());
  }

  std::string_view name_;
  std::string source_;
  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text, std::string_view name) {
  return Lexer(text, name).run();
}

}  // namespace halftone::jinja
