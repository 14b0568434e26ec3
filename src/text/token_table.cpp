#include "text/token_table.h"

#include <algorithm>

#include "archive/bytes/text.h"
#include "base/errors.h"

namespace halftone {
namespace {

/// Ids have gaps in real files, but the tables by id must not be larger than what the file itself takes.
size_t largest_bound(size_t tokens) {
  return std::min(kMaxTokens, (size_t{1} << 16) + 16 * tokens);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::optional<uint8_t> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const int high = hex_digit(token[3]), low = hex_digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

TokenTable::TokenTable(const TokenizerSpec& spec)
    : ids_(spec.model.vocabulary.size() + spec.added_tokens.size()) {
  const size_t tokens = spec.model.vocabulary.size() + spec.added_tokens.size();
  const auto bound = static_cast<int64_t>(largest_bound(tokens));
  int64_t largest = -1;
  const auto see = [&](const std::string& text, int64_t id) {
    if (id < 0 || id >= bound)
      fail(ErrorCode::kCorruptFile, "{}: token {}: id {} is not in [0, {}), the limit for {} tokens",
           spec.name, quote_text(text), id, bound, tokens);
    largest = std::max(largest, id);
  };
  for (const VocabularyToken& token : spec.model.vocabulary) see(token.text, token.id);
  for (const AddedToken& token : spec.added_tokens) see(token.content, token.id);
  texts_.resize(static_cast<size_t>(largest + 1));
  known_.resize(texts_.size(), kAbsent);
  for (const VocabularyToken& token : spec.model.vocabulary) add(spec.name, token.text, token.id, kModel);
  for (const AddedToken& token : spec.added_tokens) add(spec.name, token.content, token.id, kAdded);
}

void TokenTable::add(const std::string& name, const std::string& text, int64_t id, State state) {
  if (text.size() > kLongestToken)
    fail(ErrorCode::kCorruptFile, "{}: token {} has {} bytes, more than the limit of {}", name,
         quote_text(text), text.size(), kLongestToken);
  if (!is_utf8(text)) fail(ErrorCode::kCorruptFile, "{}: token {} is not UTF-8", name, quote_text(text));
  State& known = known_[static_cast<size_t>(id)];
  const uint32_t there = ids_.find(text);
  if (state == kAdded && known == kModel && there == static_cast<uint32_t>(id)) {
    known = kAdded;
    return;
  }
  if (there != StringMap::kNone)
    fail(ErrorCode::kCorruptFile, "{}: token {} stands twice, with the ids {} and {}", name, quote_text(text),
         there, id);
  if (known != kAbsent)
    fail(ErrorCode::kCorruptFile, "{}: tokens {} and {} have the same id, {}", name,
         quote_text(texts_[static_cast<size_t>(id)]), quote_text(text), id);
  known = state;
  texts_[static_cast<size_t>(id)] = text;
  ids_.add(text, static_cast<uint32_t>(id));
  ++count_;
}

}  // namespace halftone
