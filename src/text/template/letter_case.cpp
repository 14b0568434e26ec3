#include "text/template/letter_case.h"

#include "text/template/python_text.h"
#include "text/unicode.h"

namespace halftone::jinja {

std::string upper_case(Rendering& rendering, std::string_view text) {
  rendering.spend_on(text.size());
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    // U+0345 and the circled letters have an upper case though they are no letters.
    if (c.code >= 0x80 && (char_classes()[c.code] & (kCharLetter | kCharNumber | kCharMark)) != 0)
      rendering.fail_unsupported(fmt::format("the upper case of U+{:04X}", static_cast<unsigned>(c.code)));
    if (c.code >= 0x24D0 && c.code <= 0x24E9)
      rendering.fail_unsupported("the upper case of a circled letter");
    if (c.code >= 'a' && c.code <= 'z') {
      out += static_cast<char>(c.code - 32);
    } else {
      out += text.substr(at, c.length);
    }
    at += c.length;
  }
  return out;
}

std::string lower_case(Rendering& rendering, std::string_view text) {
  rendering.spend_on(text.size());
  std::u32string lower;
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    if (c.code == 0x3A3) rendering.fail_unsupported("the lower case of U+03A3");
    append_lower(c.code, lower);
    at += c.length;
  }
  return to_utf8(lower);
}

std::string capitalized(Rendering& rendering, std::string_view text) {
  if (text.empty()) return "";
  const size_t first = char_at(text, 0).length;
  return upper_case(rendering, text.substr(0, first)) + lower_case(rendering, text.substr(first));
}

std::string title_case(Rendering& rendering, std::string_view text, bool letters_only) {
  std::string out;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    const std::string_view letter = text.substr(at, c.length);
    at += c.length;
    const bool ends_word =
        letters_only ? (char_classes()[c.code] & kCharLetter) == 0
                     : is_space(c.code) ||
                           (c.code < 0x80 && std::string_view("-({[<").find(static_cast<char>(c.code)) !=
                                                 std::string_view::npos);
    out += ends_word ? std::string(letter)
           : in_word ? lower_case(rendering, letter)
                     : upper_case(rendering, letter);
    in_word = !ends_word;
  }
  return out;
}

}  // namespace halftone::jinja
