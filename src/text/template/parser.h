// Tokens of a template to its syntax, by Jinja's grammar.
#pragma once

#include <string_view>

#include "text/template/syntax.h"

namespace halftone::jinja {

/// Throws halftone::Error with the line: kCorruptFile for what is no template, kUnsupported with the name of a tag that this
/// version does not know. Unknown filters, tests and methods are refused when a rendering comes to them: most templates have
/// branches, for tools say, that a conversation never takes.
StatementList parse_template(std::string_view text, std::string_view name);

}  // namespace halftone::jinja
