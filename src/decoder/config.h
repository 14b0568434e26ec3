// The sizes of a decoder, from the metadata of its file.
#pragma once

#include <cstdint>
#include <string>

#include "archive/gguf/gguf.h"

namespace halftone {

/// Of the Llama family: RMS norms, rotary positions, grouped queries, SiLU(gate) · up. Every size is checked against
/// the tensors when those are read.
struct DecoderConfig {
  std::string file;  ///< for messages
  std::string architecture, name, chat_template;
  int64_t layers = 0;
  int64_t width = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_width = 0;
  int64_t hidden = 0;  ///< width of the feed-forward part
  int64_t vocabulary = 0;
  int64_t trained_context = 0;
  double rope_base = 10000;
  double norm_eps = 1e-5;

  int64_t cache_values(int64_t context) const { return 2 * layers * kv_heads * head_width * context; }
};

/// Throws kUnsupported for an architecture that is not known, or a known one in a form that is not (its key is named);
/// kCorruptFile for sizes that cannot be.
DecoderConfig read_decoder_config(const GgufReader& file, const std::string& path);

}  // namespace halftone
