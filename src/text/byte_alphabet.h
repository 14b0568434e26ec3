// The alphabet of byte-level models: each byte is written as one visible character, a space as "Ġ".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace halftone {

char32_t char_of_byte(uint8_t byte);
/// The bytes that a token stands for; nothing if one of its characters is not in the alphabet.
std::optional<std::string> bytes_of_token(std::string_view token);

}  // namespace halftone
