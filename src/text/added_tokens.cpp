#include "text/added_tokens.h"

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "text/normalizers.h"
#include "text/unicode.h"

namespace halftone {
namespace {

size_t last_char_begin(std::string_view text) {
  size_t last = text.size() - 1;
  while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
  return last;
}

bool has_class(std::string_view text, size_t at, uint8_t mask) {
  return (char_classes()[char_at(text, at).code] & mask) != 0;
}

/// Where the white space before `end` begins, not before `least`.
size_t space_begin(std::string_view text, size_t least, size_t end) {
  while (end > least) {
    const size_t last = last_char_begin(text.substr(0, end));
    if (last < least || !has_class(text, last, kCharSpace)) break;
    end = last;
  }
  return end;
}

size_t space_end_after(std::string_view text, size_t at) {
  while (at < text.size() && has_class(text, at, kCharSpace)) at += char_at(text, at).length;
  return at;
}

}  // namespace

AddedTokens::AddedTokens(const TokenizerSpec& spec) : tokens_(spec.added_tokens) {
  // Of tokens that are the same once normalized the first wins, special ones before others.
  for (const bool special : {true, false}) {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const AddedToken& token = tokens_[i];
      if (token.special != special) continue;
      std::string text = token.content;
      if (token.normalized) apply_normalizers(spec.normalizers, text);
      if (text.empty())
        fail(ErrorCode::kCorruptFile, "{}: added token {} is empty{}", spec.name, quote_text(token.content),
             token.normalized ? " after normalization" : "");
      (token.normalized ? normalized_ : raw_).add(text, static_cast<uint32_t>(i));
    }
  }
}

bool AddedTokens::is_single_word(std::string_view text, size_t begin, size_t end) const {
  const bool joins_left = begin > 0 && has_class(text, last_char_begin(text.substr(0, begin)), kCharWord);
  const bool joins_right = end < text.size() && has_class(text, end, kCharWord);
  return !joins_left && !joins_right;
}

// A token that is found but does not count (within a word, or special and not asked for) is text as a whole: the search goes on
// behind it.
std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text, bool normalized,
                                                  bool parse_special) const {
  const Trie& trie = normalized ? normalized_ : raw_;
  std::vector<Part> parts;
  size_t text_begin = 0;
  for (size_t at = 0; !trie.empty() && at < text.size();) {
    if (!trie.may_begin(text[at])) {
      ++at;
      continue;
    }
    const Trie::Match match = trie.longest_prefix(text.substr(at));
    if (match.length == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[match.id];
    size_t begin = at, end = at + match.length;
    at = end;
    if (token.special && !parse_special) continue;
    if (token.single_word && !is_single_word(text, begin, end)) continue;
    if (token.lstrip) begin = space_begin(text, std::min(text_begin, begin), begin);
    if (token.rstrip) end = space_end_after(text, end);
    if (text_begin < begin) parts.push_back({text_begin, begin, std::nullopt});
    parts.push_back({begin, end, token.id});
    text_begin = end;
  }
  if (text_begin < text.size()) parts.push_back({text_begin, text.size(), std::nullopt});
  return parts;
}

}  // namespace halftone
