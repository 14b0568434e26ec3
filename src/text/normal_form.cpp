#include "text/normal_form.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "text/unicode.h"
#include "text/unicode_tables.h"

namespace halftone {
namespace {

// A Hangul syllable is lead × 588 + vowel × 28 + tail (0: none), counted from U+AC00.
constexpr char32_t kSyllable = 0xAC00, kLead = 0x1100, kVowel = 0x1161, kTail = 0x11A7;
constexpr char32_t kVowels = 21, kTails = 28, kSyllables = 19 * kVowels * kTails;
struct NormalTables {
  std::vector<uint8_t> combining = std::vector<uint8_t>(0x1F000);  ///< none is later
  std::unordered_map<char32_t, const Decomposition*> canonical, compatible;
  std::unordered_map<uint64_t, char32_t> composed;  ///< by first << 32 | second
  /// A text without these characters is in NFC: they are reordered, compose with what stands before, or decompose for good.
  std::vector<bool> not_nfc_alone = std::vector<bool>(0x110000);

  NormalTables() {
    for (const ClassRun& run : combining_runs()) {
      for (char32_t c = run.first; c <= run.last; ++c) combining.at(c) = run.value;
    }
    for (const Decomposition& row : decompositions())
      ((row.count_and_kind & 1) == 0 ? canonical : compatible).emplace(row.from, &row);
    for (const Composition& row : compositions())
      composed.emplace(uint64_t{row.first} << 32 | row.second, row.both);
    for (const auto& [from, row] : canonical) not_nfc_alone[from] = true;
    for (const Composition& row : compositions()) not_nfc_alone[row.both] = false;
    for (const Composition& row : compositions()) not_nfc_alone[row.second] = true;
    for (char32_t c = 0; c < combining.size(); ++c) {
      if (combining[c] != 0) not_nfc_alone[c] = true;
    }
    std::fill_n(not_nfc_alone.begin() + kVowel, kVowels, true);
    std::fill_n(not_nfc_alone.begin() + kTail, kTails, true);
  }
  uint8_t combining_class(char32_t c) const { return c < combining.size() ? combining[c] : 0; }
};

const NormalTables& normal_tables() {
  static const NormalTables kTables;
  return kTables;
}

void append_decomposed(char32_t c, bool compatible, std::u32string& out) {
  if (c < 0x80) {
    out += c;
    return;
  }
  if (c >= kSyllable && c < kSyllable + kSyllables) {
    const char32_t index = c - kSyllable;
    out += kLead + index / (kVowels * kTails);
    out += kVowel + index % (kVowels * kTails) / kTails;
    if (index % kTails != 0) out += kTail + index % kTails;
    return;
  }
  const NormalTables& tables = normal_tables();
  const Decomposition* row = nullptr;
  if (compatible) {
    if (const auto found = tables.compatible.find(c); found != tables.compatible.end()) row = found->second;
  }
  if (row == nullptr) {
    const auto found = tables.canonical.find(c);
    if (found == tables.canonical.end()) {
      out += c;
      return;
    }
    row = found->second;
  }
  for (const char32_t part : decomposed().subspan(row->offset, row->count_and_kind >> 1)) out += part;
}

/// Marks after a base stand in the order of their classes; marks of one class keep theirs.
void reorder_marks(std::u32string& text) {
  const NormalTables& tables = normal_tables();
  const auto before = [&](char32_t a, char32_t b) {
    return tables.combining_class(a) < tables.combining_class(b);
  };
  for (auto begin = text.begin(); begin != text.end();) {
    if (tables.combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end =
        std::find_if(begin, text.end(), [&](char32_t c) { return tables.combining_class(c) == 0; });
    std::stable_sort(begin, end, before);
    begin = end;
  }
}

/// The one character for two neighbours, 0 if there is none.
char32_t compose_pair(char32_t first, char32_t second) {
  if (first >= kLead && first < kLead + 19 && second >= kVowel && second < kVowel + kVowels)
    return kSyllable + ((first - kLead) * kVowels + (second - kVowel)) * kTails;
  if (first >= kSyllable && first < kSyllable + kSyllables && (first - kSyllable) % kTails == 0 &&
      second > kTail && second < kTail + kTails)
    return first + (second - kTail);
  const auto& composed = normal_tables().composed;
  const auto found = composed.find(uint64_t{first} << 32 | second);
  return found == composed.end() ? 0 : found->second;
}

void compose(std::u32string& text) {
  const NormalTables& tables = normal_tables();
  constexpr size_t kNone = SIZE_MAX;
  size_t starter = kNone, out = 0;
  uint8_t last_class = 0;  // of the character before, within what follows the starter
  for (const char32_t c : text) {
    const uint8_t own = tables.combining_class(c);
    const bool adjacent = starter != kNone && starter + 1 == out;
    const bool blocked = !adjacent && (last_class == 0 || last_class >= own);
    if (const char32_t both = starter == kNone || blocked ? 0 : compose_pair(text[starter], c); both != 0) {
      text[starter] = both;
      continue;
    }
    if (own == 0) starter = out;
    last_class = own;
    text[out++] = c;
  }
  text.resize(out);
}

}  // namespace

void normalize(std::u32string& text, NormalForm form) {
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  std::u32string decomposed_text;
  decomposed_text.reserve(text.size());
  for (const char32_t c : text) append_decomposed(c, compatible, decomposed_text);
  reorder_marks(decomposed_text);
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) compose(decomposed_text);
  text = std::move(decomposed_text);
}

std::string normal_form(std::string text, NormalForm form) {
  if (is_ascii(text)) return text;
  std::u32string wide = to_utf32(text);
  const NormalTables& tables = normal_tables();
  if (form == NormalForm::kNfc &&
      std::none_of(wide.begin(), wide.end(), [&](char32_t c) { return tables.not_nfc_alone[c]; }))
    return text;
  normalize(wide, form);
  return to_utf8(wide);
}

}  // namespace halftone
