#include "minilm/text.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

namespace minilm {
namespace {

struct Range {
  char32_t first, last;
};
/// Code points first, first + stride, …, last each become themselves plus delta.
struct FoldRun {
  char32_t first, last;
  int32_t stride, delta;
};
struct FoldPair {
  char32_t from, first, second;
};

#include "minilm/unicode_tables.inc"

constexpr char32_t kReplacement = 0xFFFD;

/// The last row of a table sorted by `first` that begins at or before c; nullptr if all begin later.
template <typename Row, size_t N>
const Row* row_before(const Row (&table)[N], char32_t c) {
  const Row* next = std::upper_bound(std::begin(table), std::end(table), c,
                                     [](char32_t x, const Row& row) { return x < row.first; });
  return next == std::begin(table) ? nullptr : next - 1;
}

template <size_t N>
bool contains(const Range (&table)[N], char32_t c) {
  const Range* row = row_before(table, c);
  return row != nullptr && c <= row->last;
}

bool is_space(char32_t c) {
  switch (c) {
    case ' ':
    case '\t':
    case '\n':
    case '\r':
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000:
      return true;
    default:
      return c >= 0x2000 && c <= 0x200A;
  }
}

/// Dropped from the text. Tab and line ends are controls to Unicode, but white space here.
bool is_dropped(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  return c == kReplacement || contains(kControls, c);
}

/// ASCII symbols such as '$' and '+' are no punctuation to Unicode; BERT splits at them too.
bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c > ' ' && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') || (c > 'z' && c < 0x7F);
  return contains(kPunctuation, c);
}

/// The blocks that BERT's authors chose; kana and Hangul are not among them, because those scripts write
/// longer words.
bool is_chinese(char32_t c) {
  static constexpr Range kBlocks[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                      {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                      {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return contains(kBlocks, c);
}

/// A syllable is lead × 588 + vowel × 28 + tail (0: none), counted from U+AC00.
void append_hangul(char32_t c, std::u32string& out) {
  const char32_t index = c - 0xAC00;
  out += 0x1100 + index / 588;
  out += 0x1161 + index % 588 / 28;
  if (index % 28 != 0) out += 0x11A7 + index % 28;
}

void append_folded(char32_t c, std::u32string& out) {
  if (contains(kNonSpacingMarks, c)) return;
  if (c >= 0xAC00 && c <= 0xD7A3) return append_hangul(c, out);
  const auto pair = std::lower_bound(std::begin(kFoldPairs), std::end(kFoldPairs), c,
                                     [](const FoldPair& row, char32_t x) { return row.from < x; });
  if (pair != std::end(kFoldPairs) && pair->from == c) {
    out += pair->first;
    out += pair->second;
    return;
  }
  const FoldRun* run = row_before(kFoldRuns, c);
  const bool folds = run != nullptr && c <= run->last && (c - run->first) % run->stride == 0;
  out += folds ? static_cast<char32_t>(static_cast<int32_t>(c) + run->delta) : c;
}

/// The length of the sequence that a lead byte announces; 0 for a byte that cannot lead.
size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

/// The code point of one complete sequence; nothing if a continuation byte is missing or the form is
/// overlong, a surrogate or past U+10FFFF.
std::optional<char32_t> decode_sequence(std::string_view bytes) {
  static constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const size_t length = bytes.size();
  if (length == 1) return static_cast<unsigned char>(bytes[0]);
  char32_t c = static_cast<unsigned char>(bytes[0]) & (0x7F >> length);
  for (const char byte : bytes.substr(1)) {
    if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80) return std::nullopt;
    c = c << 6 | (static_cast<unsigned char>(byte) & 0x3F);
  }
  if (c < kLeast[length] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return std::nullopt;
  return c;
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = sequence_length(static_cast<unsigned char>(text[i]));
    std::optional<char32_t> c;
    if (length != 0 && i + length <= text.size()) c = decode_sequence(text.substr(i, length));
    out += c.value_or(kReplacement);
    // After a bad sequence go on at its second byte: that one may begin a good sequence.
    i += c ? length : 1;
  }
  return out;
}

std::string encode_utf8(std::u32string_view text) {
  static constexpr char32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    if (c < 0x80) {
      out += static_cast<char>(c);
      continue;
    }
    const int extra = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    out += static_cast<char>(kLead[extra] | (c >> (6 * extra)));
    for (int shift = 6 * (extra - 1); shift >= 0; shift -= 6)
      out += static_cast<char>(0x80 | (c >> shift & 0x3F));
  }
  return out;
}

std::vector<std::u32string> split_words(std::string_view text) {
  std::vector<std::u32string> words;
  std::u32string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  std::u32string folded;
  for (const char32_t c : decode_utf8(text)) {
    if (is_dropped(c)) continue;
    if (is_space(c)) {
      end_word();
      continue;
    }
    if (is_chinese(c)) end_word();
    folded.clear();
    append_folded(c, folded);
    for (const char32_t f : folded) {  // folding may give punctuation: the Greek question mark becomes ';'
      if (is_punctuation(f)) end_word();
      word += f;
      if (is_punctuation(f)) end_word();
    }
    if (is_chinese(c)) end_word();
  }
  end_word();
  return words;
}

}  // namespace minilm
