// What a model is loaded from: a GGUF file, or a folder in Hugging Face's form.
#pragma once

#include "decoder/source/config.h"
#include "decoder/source/weight_source.h"
#include "halftone/text/tokenizer.h"

namespace halftone {

struct DecoderSource {
  DecoderConfig config;
  std::unique_ptr<WeightSource> weights;  ///< nothing of them is read yet
  Tokenizer tokenizer;
};

/// A folder is one in Hugging Face's form, anything else a GGUF file. Throws kNotFound, kIo, kCorruptFile, kUnsupported,
/// with file and field.
DecoderSource open_decoder_source(const std::string& path);

}  // namespace halftone
