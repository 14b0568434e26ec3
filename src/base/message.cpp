// Bounded messages, with control characters spelled out.
#include "halftone/cli/message.h"

#include <fmt/format.h>

namespace halftone {
namespace {

bool is_control(unsigned char byte) {
  return (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F;
}

}  // namespace

std::string bounded_message(std::string_view text) {
  std::string message;
  size_t at = 0;
  for (; at < text.size() && message.size() < kLongestMessage; ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (is_control(byte)) {
      message += fmt::format("\\x{:02x}", byte);
    } else {
      message += text[at];
    }
  }
  if (at == text.size()) return message;
  // Not within a character of UTF-8.
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U && !message.empty()) {
    message.pop_back();
    --at;
  }
  return message + fmt::format("… ({} more bytes)", text.size() - at);
}

}  // namespace halftone
