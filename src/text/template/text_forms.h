// Values as text: as Python's str() and json.dumps() write them.
#pragma once

#include <optional>
#include <string>

#include "text/template/rendering.h"

namespace halftone::jinja {

/// str(value): a text as it is, nothing for an undefined value, True, None, ['a', 1].
std::string text_of(Rendering& rendering, const Value& value);
/// The same as a value; a text is not copied.
Value as_text(Rendering& rendering, const Value& value);

struct JsonStyle {
  std::optional<std::string> indent;  ///< of one level; none: all on one line
  std::string between_items = ", ", behind_key = ": ";
  bool ascii = false;  ///< other characters are \uXXXX
  bool sort_keys = false;
};
std::string json_of(Rendering& rendering, const Value& value, const JsonStyle& style);

}  // namespace halftone::jinja
