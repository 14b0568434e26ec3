// What a Generator holds; conversations read it too.
#pragma once

#include <vector>

#include "decoder/compiled_decoder.h"
#include "decoder/source/config.h"
#include "halftone/decoder/generate.h"

namespace halftone {

struct Generator::State {
  DecoderConfig config;
  DecoderInfo info;
  Tokenizer tokenizer;
  std::vector<int64_t> end_ids;  ///< tokens that end an answer, whatever the prompt
  CompiledDecoder decoder;
};

}  // namespace halftone
