// Whether a tokenizer's spec can be used: sizes, steps and their order.
#pragma once

#include "halftone/text/tokenizer_spec.h"

namespace halftone {

/// The spec, or an error that begins with its name. Ids and tokens are TokenTable's to check.
TokenizerSpec checked_spec(TokenizerSpec spec);

/// The words are bytes, not characters.
bool is_byte_level(const TokenizerSpec& spec);

}  // namespace halftone
