#include "graph/text/text_scanner.h"

#include <algorithm>
#include <charconv>

#include "base/errors.h"
#include "graph/ir/text_names.h"
#include "graph/symbolic/symbolic_text.h"

namespace halftone {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

TextScanner::TextScanner(std::string_view text) : text_(text) {
  // Kept for messages: finding a line by counting each time would be quadratic where many places are
  // reported.
  line_starts_.push_back(0);
  for (size_t i = text.find('\n'); i != std::string_view::npos; i = text.find('\n', i + 1))
    line_starts_.push_back(i + 1);
}

size_t TextScanner::line_of(size_t offset) const {
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return static_cast<size_t>(next - line_starts_.begin());
}

void TextScanner::fail_at(size_t offset, std::string_view message) const {
  const size_t line = line_of(offset);
  fail(ErrorCode::kInvalidArgument, "line {}, column {}: {}", line, offset - line_starts_[line - 1] + 1,
       message);
}

void TextScanner::fail_expected(std::string_view wanted) {
  if (at_end()) fail_at(position_, fmt::format("expected {}, found the end of the text", wanted));
  const std::string_view word = peek_word();
  std::string found;
  append_quoted(found, word.empty() ? text_.substr(position_, 1) : word.substr(0, 40));
  fail_at(position_, fmt::format("expected {}, found {}", wanted, found));
}

void TextScanner::skip_space() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '#') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++position_;
    } else {
      return;
    }
  }
}

size_t TextScanner::position() {
  skip_space();
  return position_;
}

bool TextScanner::at_end() {
  return position() >= text_.size();
}

char TextScanner::peek() {
  return at_end() ? '\0' : text_[position_];
}

bool TextScanner::accept(char c) {
  if (at_end() || text_[position_] != c) return false;
  ++position_;
  return true;
}

void TextScanner::expect(char c) {
  if (!accept(c)) fail_expected(fmt::format("'{}'", c));
}

std::string_view TextScanner::peek_word() {
  skip_space();
  size_t end = position_;
  if (end >= text_.size() || is_digit(text_[end]) || text_[end] == '.') return {};
  while (end < text_.size() && (is_plain_name_char(text_[end]) || text_[end] == ':')) ++end;
  while (end > position_ && text_[end - 1] == ':') --end;
  return text_.substr(position_, end - position_);
}

bool TextScanner::accept_word(std::string_view word) {
  if (peek_word() != word) return false;
  position_ += word.size();
  return true;
}

std::string_view TextScanner::take_word(std::string_view wanted) {
  const std::string_view word = peek_word();
  if (word.empty()) fail_expected(wanted);
  position_ += word.size();
  return word;
}

std::string_view TextScanner::try_take_label() {
  const std::string_view word = peek_word();
  if (word.empty()) return {};
  const size_t start = position_;
  position_ += word.size();
  if (accept('=')) return word;
  position_ = start;
  return {};
}

std::string TextScanner::take_value_name() {
  if (!accept('%')) fail_expected("a value such as %x");
  if (position_ < text_.size() && text_[position_] == '"') {
    std::string name = take_string();
    if (name.empty()) fail_at(position_, "a value needs a name");
    return name;
  }
  size_t end = position_;
  while (end < text_.size() && is_plain_name_char(text_[end])) ++end;
  if (end == position_) fail_at(position_, "a value needs a name after %");
  const std::string name(text_.substr(position_, end - position_));
  position_ = end;
  return name;
}

char TextScanner::take_escape() {
  const size_t start = position_ - 1;
  const char kind = position_ < text_.size() ? text_[position_++] : '\0';
  switch (kind) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case '"':
    case '\\':
      return kind;
    case 'x': {
      const int high = position_ < text_.size() ? hex_digit(text_[position_]) : -1;
      const int low = position_ + 1 < text_.size() ? hex_digit(text_[position_ + 1]) : -1;
      if (high < 0 || low < 0) fail_at(start, "\\x needs two hexadecimal digits");
      position_ += 2;
      return static_cast<char>(high * 16 + low);
    }
    default:
      fail_at(start, "unknown escape; there are \\\" \\\\ \\n \\r \\t and \\xNN");
  }
}

std::string TextScanner::take_string() {
  const size_t start = position();
  if (!accept('"')) fail_expected("a string");
  std::string result;
  while (position_ < text_.size() && text_[position_] != '\n') {
    const char c = text_[position_++];
    if (c == '"') return result;
    result += c == '\\' ? take_escape() : c;
  }
  fail_at(start, "a string without its closing quote");
}

SymExpr TextScanner::take_expression() {
  skip_space();
  try {
    return parse_symbolic(text_, position_);
  } catch (const SymbolicSyntaxError& error) {
    fail_at(error.offset(), error.what());
  }
}

std::variant<int64_t, double> TextScanner::take_number() {
  const size_t start = position();
  const char* begin = text_.data() + start;
  const char* end = text_.data() + text_.size();
  const std::string_view rest = text_.substr(start);
  if (rest.starts_with("-inf")) {
    position_ += 4;
    return -std::numeric_limits<double>::infinity();
  }
  const size_t sign = rest.starts_with('-') ? 1 : 0;
  if (rest.size() <= sign || !is_digit(rest[sign])) fail_at(start, "expected a number");
  double real = 0;
  int64_t whole = 0;
  const auto as_double = std::from_chars(begin, end, real);
  const auto as_int = std::from_chars(begin, end, whole);
  position_ += static_cast<size_t>(as_double.ptr - begin);
  if (as_double.ptr == as_int.ptr) {
    if (as_int.ec != std::errc{}) fail_at(start, "the integer does not fit into 64 bits");
    return whole;
  }
  if (as_double.ec != std::errc{}) fail_at(start, "the number does not fit into a double");
  return real;
}

}  // namespace halftone
