#include "archive/bytes/text.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace halftone {
namespace {

/// Length of the well-formed sequence at the start of `text`, 0 if there is none. `text` is not empty.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  // The second byte decides on overlong forms, surrogates and the end of Unicode.
  const uint8_t second = byte(1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90)) return 0;
  return length;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string quote_text(std::string_view text) {
  constexpr size_t kLongest = 200;
  std::string result = "\"";
  while (!text.empty() && result.size() <= kLongest) {
    const auto byte = static_cast<uint8_t>(text.front());
    const size_t length = byte < 0x20 || byte == 0x7F ? 0 : sequence_length(text);
    if (length == 0) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  if (!text.empty()) result += "…";
  return result + "\"";
}

}  // namespace halftone
