#include "text/split_patterns.h"

#include <iterator>
#include <string>

#include "halftone/text/tokenizer_spec.h"
#include "text/unicode.h"

namespace halftone {
namespace {

struct KnownPattern {
  SplitPattern pattern;
  std::string_view text;
};

constexpr KnownPattern kKnownPatterns[] = {
    {SplitPattern::kGpt2, R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {SplitPattern::kLlama3,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {SplitPattern::kQwen2,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

/// One text and a place in it. All functions take and give offsets; runs end where the class ends.
class PatternScanner {
 public:
  explicit PatternScanner(std::string_view text) : text_(text), classes_(char_classes()) {}

  size_t gpt2_end(size_t at) const;
  size_t llama3_end(size_t at, size_t max_digits) const;

 private:
  static constexpr uint8_t kSpaceLetterNumber =
      kCharSpace | kCharLetter | kCharNumber;  // [^\s\p{L}\p{N}] is what has none of them

  bool has(const Char& c, uint8_t mask) const { return (classes_[c.code] & mask) != 0; }
  bool ends(size_t at) const { return at >= text_.size(); }
  bool is_other_at(size_t at) const { return !ends(at) && !has(char_at(text_, at), kSpaceLetterNumber); }
  bool is_at(size_t at, uint8_t mask) const { return !ends(at) && has(char_at(text_, at), mask); }

  size_t run_end(size_t at, uint8_t mask, bool wanted) const {
    while (!ends(at)) {
      const Char c = char_at(text_, at);
      if (has(c, mask) != wanted) break;
      at += c.length;
    }
    return at;
  }

  /// The end of 's, 't, 're, 've, 'm, 'll or 'd; 0 if none stands here.
  size_t contraction_end(size_t at, bool ignore_case) const;
  /// \s+(?!\S)|\s+ : all white space up to `end`, but without its last character if a word follows.
  size_t space_end(size_t at, size_t end) const;

  std::string_view text_;
  const uint8_t* classes_;
};

size_t PatternScanner::contraction_end(size_t at, bool ignore_case) const {
  if (text_[at] != '\'' || ends(at + 1)) return 0;
  // Without regard to case, U+017F (the long s) is an s.
  if (ignore_case && text_.substr(at + 1, 2) == "\u017F") return at + 3;
  const auto letter = [&](size_t i) {
    const char c = i < text_.size() ? text_[i] : ' ';
    return ignore_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 0x20) : c;
  };
  switch (letter(at + 1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return at + 2;
    case 'r':
    case 'v':
      return letter(at + 2) == 'e' ? at + 3 : 0;
    case 'l':
      return letter(at + 2) == 'l' ? at + 3 : 0;
    default:
      return 0;
  }
}

size_t PatternScanner::space_end(size_t at, size_t end) const {
  if (ends(end)) return end;
  size_t last = end - 1;
  while ((static_cast<unsigned char>(text_[last]) & 0xC0) == 0x80) --last;
  return last == at ? end : last;
}

size_t PatternScanner::gpt2_end(size_t at) const {
  if (const size_t end = contraction_end(at, false); end != 0) return end;
  const Char c = char_at(text_, at);
  const size_t word = c.code == ' ' && !ends(at + 1) ? at + 1 : at;
  const Char begin = char_at(text_, word);
  if (has(begin, kCharLetter)) return run_end(word + begin.length, kCharLetter, true);
  if (has(begin, kCharNumber)) return run_end(word + begin.length, kCharNumber, true);
  if (!has(begin, kCharSpace)) return run_end(word + begin.length, kSpaceLetterNumber, false);
  return space_end(at, run_end(at, kCharSpace, true));
}

size_t PatternScanner::llama3_end(size_t at, size_t max_digits) const {
  if (const size_t end = contraction_end(at, true); end != 0) return end;
  const Char c = char_at(text_, at);
  const size_t next = at + c.length;
  if (has(c, kCharLetter)) return run_end(next, kCharLetter, true);
  const bool is_line_end = c.code == '\r' || c.code == '\n';
  if (has(c, kCharNumber)) {
    size_t end = next;
    for (size_t digits = 1; digits < max_digits && is_at(end, kCharNumber); ++digits)
      end += char_at(text_, end).length;
    return end;
  }
  if (!is_line_end && is_at(next, kCharLetter)) return run_end(next, kCharLetter, true);
  if (!has(c, kCharSpace) || (c.code == ' ' && is_other_at(next))) {
    size_t end = run_end(next, kSpaceLetterNumber, false);
    while (!ends(end) && (text_[end] == '\r' || text_[end] == '\n')) ++end;
    return end;
  }
  const size_t end = run_end(at, kCharSpace, true);
  const size_t line_end = text_.substr(at, end - at).find_last_of("\r\n");
  return line_end != std::string_view::npos ? at + line_end + 1 : space_end(at, end);
}

}  // namespace

const std::vector<std::string>& known_split_patterns() {
  static const std::vector<std::string> kTexts = [] {
    std::vector<std::string> texts;
    for (const KnownPattern& known : kKnownPatterns) texts.emplace_back(known.text);
    return texts;
  }();
  return kTexts;
}

std::string_view pattern_text(SplitPattern pattern) {
  return kKnownPatterns[static_cast<size_t>(pattern)].text;
}

const SplitPattern* find_split_pattern(std::string_view text) {
  for (const KnownPattern& known : kKnownPatterns) {
    if (known.text == text) return &known.pattern;
  }
  return nullptr;
}

void scan_pattern(SplitPattern pattern, std::string_view text, std::vector<size_t>& ends) {
  const PatternScanner scanner(text);
  for (size_t at = 0; at < text.size();) {
    at = pattern == SplitPattern::kGpt2     ? scanner.gpt2_end(at)
         : pattern == SplitPattern::kLlama3 ? scanner.llama3_end(at, 3)
                                            : scanner.llama3_end(at, 1);
    ends.push_back(at);
  }
}

}  // namespace halftone
