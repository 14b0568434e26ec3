// The WordPiece tokenizer of uncased BERT models, from their vocab.txt. Knows no torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
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

  /// One token a line, its id the line number from 0. Throws halftone::Error (kNotFound, kCorruptFile),
  /// naming the file.
  static Tokenizer from_file(const std::string& path);
  /// Throws if one of [PAD], [UNK], [CLS], [SEP] is missing or a token stands twice.
  explicit Tokenizer(const std::vector<std::string>& vocabulary, const std::string& name = "vocabulary");

  /// [CLS] pieces… [SEP], at most max_tokens (2 or more) in all.
  std::vector<int64_t> encode(std::string_view text, size_t max_tokens = kDefaultMaxTokens) const;
  TokenBatch encode_batch(const std::vector<std::string>& texts, size_t max_tokens = kDefaultMaxTokens) const;

  size_t vocabulary_size() const { return ids_.size(); }

 private:
  int64_t special_id(const std::string& token, const std::string& name) const;
  void append_pieces(std::u32string_view word, std::vector<int64_t>& out) const;

  std::unordered_map<std::string, int64_t> ids_;
  int64_t pad_ = 0, unknown_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace minilm
