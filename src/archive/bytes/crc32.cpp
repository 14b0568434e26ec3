#include "archive/bytes/crc32.h"

#include <array>
#include <bit>
#include <cstring>

namespace halftone {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320U;
constexpr size_t kStep = 16;
using Tables = std::array<std::array<uint32_t, 256>, kStep>;

/// tables[k][b] is the effect of byte b when k more bytes follow it in the step; the sixteen lookups of one
/// step do not depend on one another, which is where the speed comes from.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1U) != 0 ? kPolynomial : 0U);
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < kStep; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xFFU];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

uint32_t fold_word(uint32_t word, size_t following) {
  return kTables[following + 3][word & 0xFFU] ^ kTables[following + 2][(word >> 8) & 0xFFU] ^
         kTables[following + 1][(word >> 16) & 0xFFU] ^ kTables[following][word >> 24];
}

}  // namespace

uint32_t crc32(std::span<const std::byte> bytes, uint32_t previous) {
  uint32_t value = ~previous;
  const std::byte* cursor = bytes.data();
  size_t left = bytes.size();
  if constexpr (std::endian::native == std::endian::little) {
    for (; left >= kStep; cursor += kStep, left -= kStep) {
      uint32_t words[4];
      std::memcpy(words, cursor, sizeof(words));
      value = fold_word(words[0] ^ value, 12) ^ fold_word(words[1], 8) ^ fold_word(words[2], 4) ^
              fold_word(words[3], 0);
    }
  }
  for (; left > 0; ++cursor, --left) {
    value = (value >> 8) ^ kTables[0][(value ^ static_cast<uint32_t>(*cursor)) & 0xFFU];
  }
  return ~value;
}

}  // namespace halftone
