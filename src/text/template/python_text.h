// What Python's str does with texts, character by character. Every text is UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halftone::jinja {

/// str.isspace() of one character, which is what \s means in Python too.
bool is_space(char32_t c);
/// The text without white space at its start, its end, or both.
std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);
std::string_view strip(std::string_view text);

/// Characters.
size_t length_of(std::string_view text);
/// Where each character begins, and the end of the text.
std::vector<size_t> character_starts(std::string_view text);

/// At most so many bytes of its start, for messages; not within a character.
std::string_view beginning(std::string_view text, size_t bytes = 60);

/// As find(), in time that is linear in both lengths.
size_t find_text(std::string_view text, std::string_view part, size_t from = 0);

/// repr(float).
std::string float_text(double number);

}  // namespace halftone::jinja
