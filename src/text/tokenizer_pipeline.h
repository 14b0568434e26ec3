// A tokenizer put together from its spec: checked, and with the tables that encode() and decode() read.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/text/tokenizer.h"
#include "text/added_tokens.h"
#include "text/decoders.h"
#include "text/models.h"
#include "text/token_table.h"

namespace halftone {

class TokenizerPipeline {
 public:
  explicit TokenizerPipeline(TokenizerSpec spec);

  const TokenizerSpec& spec() const { return spec_; }
  const TokenTable& tokens() const { return tokens_; }
  bool is_special(int64_t id) const { return tokens_.has(id) && special_[static_cast<size_t>(id)]; }

  std::vector<int64_t> encode(std::string_view text, const EncodeOptions& options) const;
  std::string token_bytes(int64_t id) const;
  /// Gives the chain the token of an id, if there is one.
  void decode_to(DecoderChain& chain, int64_t id, bool skip_special, std::string& out) const;

 private:
  struct Work;
  void check_ids() const;
  void encode_part(std::string_view text, bool at_start, Work& work) const;
  void encode_words(std::string_view text, bool at_start, Work& work) const;

  TokenizerSpec spec_;
  TokenTable tokens_;
  AddedTokens added_;
  std::vector<bool> special_;
  std::unique_ptr<WordModel> model_;
};

}  // namespace halftone
