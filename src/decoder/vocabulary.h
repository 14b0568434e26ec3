// The tokenizer that the metadata of a GGUF file describes.
#pragma once

#include "archive/gguf/gguf.h"
#include "halftone/text/tokenizer.h"

namespace halftone {

/// Throws kUnsupported, with the name, for kinds of tokenizers that are not known.
Tokenizer read_gguf_tokenizer(const GgufReader& file, const std::string& path);

}  // namespace halftone
