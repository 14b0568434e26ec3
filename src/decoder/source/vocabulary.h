// The tokenizer of a decoder: from the metadata of a GGUF file, or from a folder's tokenizer.json.
#pragma once

#include "archive/gguf/gguf.h"
#include "decoder/source/model_folder.h"
#include "halftone/text/tokenizer.h"

namespace halftone {

/// Throws kUnsupported, with the name, for kinds of tokenizers that are not known.
Tokenizer read_gguf_tokenizer(const GgufReader& file, const std::string& path);

/// What a folder's other files say about its tokens.
struct FolderVocabulary {
  std::vector<int64_t> begin_ids, end_ids;  ///< the first of each counts
  int64_t rows = 0;                         ///< of the model's embedding
};
/// kNotFound without a tokenizer.json. Added tokens that the model has no row for, as Gemma's for images, are left out.
Tokenizer read_folder_tokenizer(const ModelFolder& folder, const FolderVocabulary& vocabulary);

}  // namespace halftone
