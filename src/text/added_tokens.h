// Finds added tokens in a text, before the model sees the rest.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "halftone/text/tokenizer_spec.h"
#include "text/hash_table.h"

namespace halftone {

class AddedTokens {
 public:
  /// Throws kCorruptFile for a token that is empty, also after normalization.
  explicit AddedTokens(const TokenizerSpec& spec);

  struct Part {
    size_t begin, end;
    std::optional<int64_t> id;  ///< nothing: ordinary text
  };
  /// The leftmost token first, of those that begin at one place the longest. `normalized`: of the normalized text.
  /// Without `parse_special`, special tokens are text.
  std::vector<Part> split(std::string_view text, bool normalized, bool parse_special) const;

 private:
  bool is_single_word(std::string_view text, size_t begin, size_t end) const;

  std::vector<AddedToken> tokens_;
  Trie raw_, normalized_;
};

}  // namespace halftone
