// What splits a word into tokens: BPE, Unigram, WordPiece. Immutable after construction.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "halftone/text/tokenizer_spec.h"
#include "text/token_table.h"

namespace halftone {

/// Memory that one call of encode() uses again for each word.
struct WordScratch {
  struct Symbol {
    uint32_t id;
    uint32_t previous, next;  ///< indexes; kEnd at either end
  };
  struct Candidate {
    uint64_t order;  ///< rank, then place: the smallest is merged first
    uint32_t merged;
  };
  struct PathNode {
    double score;
    uint32_t start, id;
  };
  static constexpr uint32_t kEnd = UINT32_MAX;
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
  std::vector<PathNode> path;
};

class WordModel {
 public:
  virtual ~WordModel() = default;
  /// Appends the tokens of a word, which is not empty: UTF-8, or any bytes for a byte-level model.
  virtual void append_ids(std::string_view word, WordScratch& scratch, std::vector<int64_t>& out) const = 0;
};

/// `byte_level`: tokens are written in the alphabet of bytes, and words are bytes. Throws kCorruptFile, beginning with spec.name.
std::unique_ptr<WordModel> make_bpe(const TokenizerSpec& spec, const TokenTable& tokens, bool byte_level);
std::unique_ptr<WordModel> make_unigram(const TokenizerSpec& spec, const TokenTable& tokens);
std::unique_ptr<WordModel> make_word_piece(const TokenizerSpec& spec, const TokenTable& tokens);

/// The ids of "<0x00>" to "<0xFF>", StringMap::kNone where there is none.
std::vector<uint32_t> byte_token_ids(const TokenTable& tokens);

}  // namespace halftone
