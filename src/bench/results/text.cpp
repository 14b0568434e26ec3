#include "bench/results/text.h"

#include <fmt/format.h>

namespace halftone {

std::string html_text(std::string_view text) {
  std::string result;
  for (const char c : utf8_text(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      // Browsers replace it or drop it, depending on the place.
      case '\0':
        result += "\xEF\xBF\xBD";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string json_for_script(std::string_view json) {
  std::string result;
  result.reserve(json.size() + json.size() / 16);
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '<' || c == '>' || c == '&') {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else if (json.substr(i, 3) == "\xE2\x80\xA8" || json.substr(i, 3) == "\xE2\x80\xA9") {
      result += json[i + 2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace halftone
