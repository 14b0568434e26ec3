// The tokens of a tokenizer by id and by text, checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/text/tokenizer_spec.h"
#include "text/hash_table.h"

namespace halftone {

/// A search may look this far ahead at every place of a text, so a file must not be able to make it long.
constexpr size_t kLongestToken = 2048;
constexpr size_t kMaxTokens = size_t{1} << 22;

class TokenTable {
 public:
  /// The model's vocabulary, then the added tokens. Throws kCorruptFile, beginning with spec.name, for texts or ids that stand
  /// twice, ids out of range and tokens that are too long. An added token may repeat one of the vocabulary with the same id.
  explicit TokenTable(const TokenizerSpec& spec);

  uint32_t find(std::string_view text) const { return ids_.find(text); }
  bool has(int64_t id) const { return id >= 0 && id < bound() && known_[static_cast<size_t>(id)] != kAbsent; }
  /// Both: `id` must be there.
  const std::string& text(int64_t id) const { return texts_[static_cast<size_t>(id)]; }
  bool is_added(int64_t id) const { return known_[static_cast<size_t>(id)] == kAdded; }

  int64_t bound() const { return static_cast<int64_t>(texts_.size()); }
  int64_t count() const { return count_; }

 private:
  enum State : uint8_t { kAbsent, kModel, kAdded };
  void add(const std::string& name, const std::string& text, int64_t id, State state);

  StringMap ids_;
  std::vector<std::string> texts_;
  std::vector<State> known_;
  int64_t count_ = 0;
};

/// The byte that "<0x0A>" and its like stand for.
std::optional<uint8_t> byte_of_token(std::string_view token);

}  // namespace halftone
