#include "text/unicode.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "text/unicode_tables.h"

namespace halftone {
namespace {

constexpr char32_t kReplacementChar = 0xFFFD;

std::vector<uint8_t> make_char_classes() {
  std::vector<uint8_t> classes(0x110000);
  for (const ClassRun& run : class_runs())
    std::fill(classes.begin() + run.first, classes.begin() + run.last + 1, run.value);
  return classes;
}

}  // namespace

const uint8_t* char_classes() {
  static const std::vector<uint8_t> kClasses = make_char_classes();
  return kClasses.data();
}

Utf8Unit next_utf8(std::string_view text) {
  using State = Utf8Unit::State;
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {1, State::kWhole};
  const size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0) return {1, State::kBroken};
  // The second byte decides on overlong forms, surrogates and the end of Unicode.
  unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, State::kCut};
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < low || byte > high) return {i, State::kBroken};
    low = 0x80;
    high = 0xBF;
  }
  return {length, State::kWhole};
}

void append_utf8(char32_t c, std::string& out) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  static constexpr char32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  const int extra = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  out += static_cast<char>(kLead[extra] | c >> (6 * extra));
  for (int shift = 6 * (extra - 1); shift >= 0; shift -= 6)
    out += static_cast<char>(0x80 | (c >> shift & 0x3F));
}

std::u32string to_utf32(std::string_view utf8) {
  std::u32string out;
  out.reserve(utf8.size());
  for (size_t at = 0; at < utf8.size();) {
    const Char c = char_at(utf8, at);
    out += c.code;
    at += c.length;
  }
  return out;
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : text) append_utf8(c, out);
  return out;
}

namespace {

/// The bytes at the start that are ASCII, counted in words of eight: a lower bound.
size_t ascii_start(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080U;
  size_t at = 0;
  for (uint64_t word = 0; at + sizeof(word) <= text.size(); at += sizeof(word)) {
    std::memcpy(&word, text.data() + at, sizeof(word));
    if ((word & kHighBits) != 0) break;
  }
  return at;
}

/// The length of the part at the start that is UTF-8.
size_t well_formed_start(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    at += ascii_start(text.substr(at));
    // Then some characters one by one: the next word may hold a few of them.
    for (const size_t stop = at + 64; at < text.size() && at < stop;) {
      const Utf8Unit unit = next_utf8(text.substr(at));
      if (unit.state != Utf8Unit::State::kWhole) return at;
      at += unit.length;
    }
  }
  return at;
}

}  // namespace

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin() + static_cast<ptrdiff_t>(ascii_start(text)), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

void append_repaired(std::string_view text, std::string& out) {
  while (true) {
    const size_t good = well_formed_start(text);
    out += text.substr(0, good);
    text.remove_prefix(good);
    if (text.empty()) return;
    append_utf8(kReplacementChar, out);
    text.remove_prefix(next_utf8(text).length);
  }
}

std::string_view repaired_utf8(std::string_view text, std::string& storage) {
  if (well_formed_start(text) == text.size()) return text;
  storage.clear();
  append_repaired(text, storage);
  return storage;
}

void append_lower(char32_t c, std::u32string& out) {
  if (c < 0x80) {
    out += c >= 'A' && c <= 'Z' ? c + 0x20 : c;
    return;
  }
  if (c == 0x130) {  // I with a dot above: i, and the dot
    out += U"i\u0307";
    return;
  }
  const std::span<const LowerRun> runs = lower_runs();
  const auto next = std::upper_bound(runs.begin(), runs.end(), c,
                                     [](char32_t x, const LowerRun& run) { return x < run.first; });
  if (next != runs.begin()) {
    const LowerRun& run = *std::prev(next);
    if (c <= run.last && (c - run.first) % run.stride == 0)
      c = static_cast<char32_t>(static_cast<int32_t>(c) + run.delta);
  }
  out += c;
}

}  // namespace halftone
