// Sentences to batches of token ids for uncased BERT models, from their vocab.txt. Knows no torch.
#pragma once

#include <halftone/text/tokenizer.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace minilm {

/// Token ids of several texts, row-major (rows × columns), padded with [PAD] to the longest.
struct TokenBatch {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<int64_t> ids;
  std::vector<int64_t> mask;  ///< 1 for a token, 0 for padding
};

/// Immutable after construction, so one tokenizer may serve many threads. The names of special tokens are
/// ordinary text: a user who writes "[SEP]" gets a bracket, three letters and a bracket, never the token.
class Tokenizer {
 public:
  static constexpr size_t kDefaultMaxTokens = 128;

  /// Throws halftone::Error (kNotFound, kCorruptFile), naming the file.
  static Tokenizer from_file(const std::string& path) {
    return Tokenizer(halftone::Tokenizer::from_bert_vocabulary(path));
  }
  explicit Tokenizer(halftone::Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  /// [CLS] pieces… [SEP], at most max_tokens (2 or more) in all.
  std::vector<int64_t> encode(std::string_view text, size_t max_tokens = kDefaultMaxTokens) const;
  TokenBatch encode_batch(const std::vector<std::string>& texts, size_t max_tokens = kDefaultMaxTokens) const;

  size_t vocabulary_size() const { return static_cast<size_t>(tokenizer_.vocabulary_size()); }

 private:
  halftone::Tokenizer tokenizer_;
};

}  // namespace minilm
