// The steps that change a text before it is split into words.
#pragma once

#include <string>
#include <vector>

#include "halftone/text/tokenizer_spec.h"

namespace halftone {

/// `text` is UTF-8 and stays so.
void apply_normalizers(const std::vector<NormalizerStep>& steps, std::string& text);

/// All occurrences of `pattern`, which is not empty.
std::string replaced(std::string_view text, std::string_view pattern, std::string_view content);

}  // namespace halftone
