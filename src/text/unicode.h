// Characters: UTF-8, the classes that regular expressions and BERT know, lower case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace halftone {

/// Bits of char_classes(). make_unicode_tables.py knows their values.
enum CharClass : uint8_t {
  kCharLetter = 1,        ///< \p{L}
  kCharNumber = 2,        ///< \p{N}
  kCharSpace = 4,         ///< \s: the property White_Space
  kCharMark = 8,          ///< what StripAccents drops: \p{M}
  kCharNonSpacing = 16,   ///< what BERT drops as an accent: \p{Mn}
  kCharPunctuation = 32,  ///< what BERT splits at: \p{P} and the ASCII symbols such as '$'
  kCharOther = 64,        ///< what BERT drops as a control: \p{Cc}, \p{Cf}, \p{Co}
  kCharWord = 128,        ///< \w
};

/// The classes of all characters, indexed by code point: 0x110000 bytes, made at the first call.
const uint8_t* char_classes();

/// What stands at the start of a text that is not empty: a character, the beginning of one that the end of the text cuts off,
/// or bytes that cannot become one.
struct Utf8Unit {
  enum class State { kWhole, kCut, kBroken };
  size_t length;
  State state;
};
Utf8Unit next_utf8(std::string_view text);

/// A character of a text that is UTF-8.
struct Char {
  char32_t code;
  size_t length;
};
inline Char char_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

void append_utf8(char32_t c, std::string& out);
std::u32string to_utf32(std::string_view utf8);
std::string to_utf8(std::u32string_view text);

/// The text, if it is UTF-8; else `storage`, a copy with U+FFFD for each broken sequence, as Python's errors="replace" has it.
std::string_view repaired_utf8(std::string_view text, std::string& storage);
/// Appends the text, broken sequences as U+FFFD.
void append_repaired(std::string_view text, std::string& out);

bool is_ascii(std::string_view text);

/// Lower case of one character by itself; two characters for U+0130.
void append_lower(char32_t c, std::u32string& out);

}  // namespace halftone
