#include "text/byte_alphabet.h"

#include <array>

#include "text/unicode.h"

namespace halftone {
namespace {

// Bytes that are visible in Latin-1 stand for themselves, the others are numbered from U+0100.
constexpr char32_t kFirstInvisible = 0x100;
constexpr size_t kInvisible = 68;

struct ByteAlphabet {
  std::array<char32_t, 256> chars{};
  std::array<int, kFirstInvisible + kInvisible> bytes{};

  ByteAlphabet() {
    bytes.fill(-1);
    char32_t next = kFirstInvisible;
    for (int byte = 0; byte < 256; ++byte) {
      const bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
      chars[byte] = visible ? static_cast<char32_t>(byte) : next++;
      bytes[chars[byte]] = byte;
    }
  }
};

const ByteAlphabet& byte_alphabet() {
  static const ByteAlphabet kAlphabet;
  return kAlphabet;
}

}  // namespace

char32_t char_of_byte(uint8_t byte) {
  return byte_alphabet().chars[byte];
}

std::optional<std::string> bytes_of_token(std::string_view token) {
  const ByteAlphabet& alphabet = byte_alphabet();
  std::string bytes;
  bytes.reserve(token.size());
  for (size_t at = 0; at < token.size();) {
    const Char c = char_at(token, at);
    if (c.code >= alphabet.bytes.size() || alphabet.bytes[c.code] < 0) return std::nullopt;
    bytes += static_cast<char>(alphabet.bytes[c.code]);
    at += c.length;
  }
  return bytes;
}

}  // namespace halftone
