#include "bench/results/csv.h"

#include <algorithm>
#include <array>

#include "base/errors.h"

namespace halftone {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// What spreadsheets begin a formula with; some trim white space before they look, and East Asian ones take
// the full-width forms.
constexpr std::array<std::string_view, 11> kFormulaStarts = {
    "=", "+", "-", "@", "\t", "\r", "\n", "\xEF\xBC\x9D", "\xEF\xBC\x8B", "\xEF\xBC\x8D", "\xEF\xBC\xA0"};

bool needs_guard(std::string_view text) {
  // A leading quote too: a cell that was cut off can then not look like the empty cell "".
  if (text.starts_with('\'') || text.starts_with('"')) return true;
  // Spaces before the sign are trimmed by some.
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return std::ranges::any_of(kFormulaStarts, [&](std::string_view start) { return text.starts_with(start); });
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : text_(text), file_(file) {
    if (text_.starts_with(kByteOrderMark)) position_ = kByteOrderMark.size();
  }

  CsvDocument parse() {
    while (position_ < text_.size()) read_record();
    return std::move(document_);
  }

 private:
  void read_record() {
    CsvRecord& record = document_.records.emplace_back();
    record.begin = line_begin_ = position_;
    record.line = line_;
    document_.ended = false;
    for (bool more = true; more;) {
      CsvCell& cell = record.cells.emplace_back();
      if (peek() == '"') {
        cell.quoted = true;
        read_quoted(cell.text);
      } else {
        read_bare(cell.text);
      }
      more = end_cell();
    }
  }

  void read_bare(std::string& cell) {
    const size_t end = std::min(text_.find_first_of(",\"\r\n", position_), text_.size());
    cell = text_.substr(position_, end - position_);
    position_ = end;
    if (peek() == '"') fail_here("a quote inside of a cell that does not begin with one");
  }

  void read_quoted(std::string& cell) {
    ++position_;
    while (true) {
      const size_t quote = text_.find('"', position_);
      const size_t end = std::min(quote, text_.size());
      cell += text_.substr(position_, end - position_);
      line_ += static_cast<size_t>(std::count(text_.begin() + static_cast<ptrdiff_t>(position_),
                                              text_.begin() + static_cast<ptrdiff_t>(end), '\n'));
      position_ = end;
      if (quote == std::string_view::npos) {
        document_.open_quote = true;
        return;
      }
      ++position_;
      if (peek() != '"') return;
      cell += '"';
      ++position_;
    }
  }

  /// Whether another cell follows in this record.
  bool end_cell() {
    if (position_ == text_.size()) return false;
    const char c = text_[position_];
    if (c == ',') return ++position_, true;
    if (c == '\r' && position_ + 1 == text_.size()) return ++position_, false;  // half a line end
    const bool two = text_.substr(position_, 2) == "\r\n";
    if (c != '\n' && !two) fail_here(c == '\r' ? "a lone carriage return" : "text after a closing quote");
    position_ += two ? 2 : 1;
    ++line_;
    document_.ended = true;
    return false;
  }

  int peek() const { return position_ < text_.size() ? static_cast<unsigned char>(text_[position_]) : -1; }

  [[noreturn]] void fail_here(std::string_view what) const {
    fail(ErrorCode::kCorruptFile, "{}: line {}: {} (byte {} of the record)", file_, line_, what,
         position_ - line_begin_ + 1);
  }

  std::string_view text_;
  std::string_view file_;
  size_t position_ = 0;
  size_t line_begin_ = 0;
  size_t line_ = 1;
  CsvDocument document_;
};

}  // namespace

CsvDocument parse_csv(std::string_view text, std::string_view file) {
  return Parser(text, file).parse();
}

std::string csv_cell(std::string_view text, bool always_quoted) {
  // Spaces at the ends and control characters are safe in quotes, and some readers change them outside.
  const bool plain =
      !always_quoted &&
      std::ranges::none_of(text,
                           [](char c) { return c == ',' || c == ';' || c == '"' || (c >= 0 && c < ' '); }) &&
      !text.starts_with(' ') && !text.ends_with(' ');
  if (plain) return std::string(text);
  std::string cell = "\"";
  for (const char c : text) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + '"';
}

std::string csv_guarded(std::string_view text) {
  return needs_guard(text) ? '\'' + std::string(text) : std::string(text);
}

std::string_view csv_unguarded(std::string_view text) {
  const bool guarded = text.starts_with('\'') && needs_guard(text.substr(1));
  return guarded ? text.substr(1) : text;
}

}  // namespace halftone
