// One sequence of tokens going through a compiled decoder, with its KV cache.
#pragma once

#include <span>
#include <vector>

#include "decoder/compiled_decoder.h"

namespace halftone {

/// Not thread-safe; sequences are independent of each other.
class Sequence {
 public:
  explicit Sequence(const CompiledDecoder& decoder);

  /// Appends the tokens and gives the logits after the last one, [1, 1, vocabulary]. kInvalidArgument if there is no room.
  at::Tensor feed(std::span<const int64_t> tokens);
  /// Keeps the first `size` tokens and forgets the others. kInvalidArgument if there are fewer.
  void truncate(int64_t size);

  /// What the cache holds.
  const std::vector<int64_t>& tokens() const { return tokens_; }
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t room() const { return decoder_.context - size(); }
  /// Tokens of one call of the model, at most.
  static constexpr int64_t kChunk = 256;

 private:
  at::Tensor feed_chunk(std::span<const int64_t> tokens);

  CompiledDecoder decoder_;
  Session session_;
  std::vector<int64_t> tokens_;
};

}  // namespace halftone
