// Upper and lower case as Python has it.
#pragma once

#include <string>
#include <string_view>

#include "text/template/rendering.h"

namespace halftone::jinja {

/// kUnsupported for letters beyond ASCII whose upper case no table here has.
std::string upper_case(Rendering& rendering, std::string_view text);
/// kUnsupported for a capital sigma, whose lower case depends on its place in the word.
std::string lower_case(Rendering& rendering, std::string_view text);
/// The first character in upper case, the others in lower case.
std::string capitalized(Rendering& rendering, std::string_view text);
/// The same for each word. The filter `title` ends words at white space, hyphens and brackets; the method at everything but letters.
std::string title_case(Rendering& rendering, std::string_view text, bool letters_only);

}  // namespace halftone::jinja
