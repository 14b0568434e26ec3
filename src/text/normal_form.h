// Unicode normalization: NFC, NFD, NFKC, NFKD.
#pragma once

#include <string>

namespace halftone {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

/// `text` is UTF-8, and so is the result.
std::string normal_form(std::string text, NormalForm form);
void normalize(std::u32string& text, NormalForm form);

}  // namespace halftone
