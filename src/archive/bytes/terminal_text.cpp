#include "archive/bytes/terminal_text.h"

#include <fmt/format.h>

#include <cstdint>

#include "archive/bytes/text.h"
#include "halftone/cli/table.h"

namespace halftone {
namespace {

/// The well-formed sequence at the start of `text`, empty if there is none.
std::string_view first_character(std::string_view text) {
  for (size_t length = 1; length <= 4 && length <= text.size(); ++length) {
    if (is_utf8(text.substr(0, length))) return text.substr(0, length);
  }
  return {};
}

std::string spelled_byte(char byte) {
  return fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
}

uint32_t code_point(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(character[i]); };
  if (character.size() == 1) return byte(0);
  uint32_t value = byte(0) & (0x7FU >> character.size());
  for (size_t i = 1; i < character.size(); ++i) value = value << 6U | (byte(i) & 0x3FU);
  return value;
}

/// Moves the cursor, hides text, or turns the direction in which it is written.
bool is_unsafe(uint32_t c) {
  const auto within = [c](uint32_t first, uint32_t last) { return c >= first && c <= last; };
  return c < 0x20 || within(0x7F, 0x9F) || c == 0xAD || c == 0x61C || within(0x200B, 0x200F) ||
         within(0x2028, 0x202E) || within(0x2060, 0x206F) || c == 0xFEFF || within(0xFFF9, 0xFFFB) ||
         within(0xE0000, 0xE007F);
}

std::string spelled(uint32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (c < 0x100) return fmt::format("\\x{:02x}", c);
  return c < 0x10000 ? fmt::format("\\u{:04x}", c) : fmt::format("\\U{:08x}", c);
}

}  // namespace

std::string utf8_text(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string result;
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    if (character.empty()) {
      result += spelled_byte(text.front());
    } else {
      result += character;
    }
    text.remove_prefix(character.empty() ? 1 : character.size());
  }
  return result;
}

std::string terminal_text(std::string_view text, int longest) {
  const std::string valid = utf8_text(text);
  std::string result;
  for (std::string_view rest = valid; !rest.empty();) {
    const std::string_view character = first_character(rest);
    const uint32_t c = code_point(character);
    if (is_unsafe(c)) {
      result += spelled(c);
    } else {
      result += character;
    }
    rest.remove_prefix(character.size());
  }
  return shorten(result, longest);
}

}  // namespace halftone
