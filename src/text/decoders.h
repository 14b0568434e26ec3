// Tokens to text, one by one. A whole text is decoded by the same code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "halftone/text/tokenizer_spec.h"

namespace halftone {

/// The decoders of one text, with what they hold back. Borrows the steps. Text comes out as soon as no later token can change it.
class DecoderChain {
 public:
  explicit DecoderChain(const std::vector<DecoderStep>& steps);

  void push(std::string_view token, std::string& out);
  void finish(std::string& out);  ///< gives what was held back; the next push() begins a new text

 private:
  struct Stage {
    const DecoderStep* step;  ///< nullptr: joins tokens by spaces
    bool passes_on = false;   ///< kFuse and kByteLevel: parts go on at once, since later stages take them so
    bool within_token = false;  ///< kStrip behind such a stage: what comes are parts of one token
    bool first = true;          ///< no token has come yet
    int64_t stripped = 0;       ///< kStrip: characters taken from the start
    bool strips = true;         ///< kStrip: still at the start
    std::string held;
  };

  void push_to(size_t stage, std::string_view token, std::string& out);
  void finish_stage(size_t stage, std::string& out);
  void push_byte(size_t stage, std::string_view token, std::string& out);
  void end_bytes(size_t stage, std::string& out);
  void push_strip(size_t stage, std::string_view token, std::string& out);

  std::vector<Stage> stages_;
};

}  // namespace halftone
