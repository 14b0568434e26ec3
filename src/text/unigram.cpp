// Unigram: of all ways to split a word into tokens, the one with the best sum of scores (Viterbi), and WordPiece: the longest token
// first, then the longest that continues it.
#include <algorithm>
#include <cmath>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "text/models.h"
#include "text/unicode.h"

namespace halftone {
namespace {

constexpr double kUnknownPenalty = 10;  // below the worst score of a token

class UnigramModel : public WordModel {
 public:
  UnigramModel(const TokenizerSpec& spec, const TokenTable& tokens)
      : name_(spec.name),
        byte_fallback_(spec.model.byte_fallback),
        scores_(static_cast<size_t>(tokens.bound())),
        byte_tokens_(byte_token_ids(tokens)) {
    if (spec.model.unknown_id) unknown_ = static_cast<uint32_t>(*spec.model.unknown_id);
    for (const VocabularyToken& token : spec.model.vocabulary) {
      if (!std::isfinite(token.score))
        fail(ErrorCode::kCorruptFile, "{}: the score of token {} is not finite", spec.name,
             quote_text(token.text));
      scores_[static_cast<size_t>(token.id)] = token.score;
      worst_ = std::min(worst_, token.score);
      trie_.add(token.text, static_cast<uint32_t>(token.id));
    }
  }

  void append_ids(std::string_view word, WordScratch& scratch, std::vector<int64_t>& out) const override {
    find_path(word, scratch.path);
    // From the end to the start, neighbouring unknown characters as one; then turned around.
    const size_t before = out.size();
    for (size_t end = word.size(); end > 0;) {
      size_t begin = scratch.path[end].start;
      const uint32_t id = scratch.path[end].id;
      if (id == unknown_) {
        while (begin > 0 && scratch.path[begin].id == unknown_) begin = scratch.path[begin].start;
        append_unknown(word.substr(begin, end - begin), out);
      } else {
        out.push_back(id);
      }
      end = begin;
    }
    std::reverse(out.begin() + static_cast<ptrdiff_t>(before), out.end());
  }

 private:
  static constexpr uint32_t kUnreached = UINT32_MAX;

  /// path[i]: the last token of the best way to split the first i bytes, and where it begins.
  void find_path(std::string_view word, std::vector<WordScratch::PathNode>& path) const {
    path.assign(word.size() + 1, {0, kUnreached, 0});
    for (size_t at = 0; at < word.size();) {
      const size_t length = char_at(word, at).length;
      const double so_far = path[at].score;
      bool covered = false;
      const auto consider = [&](size_t end, double score, uint32_t id) {
        WordScratch::PathNode& node = path[end];
        if (node.start == kUnreached || score > node.score) node = {score, static_cast<uint32_t>(at), id};
      };
      trie_.for_each_prefix(word.substr(at), [&](size_t matched, uint32_t id) {
        consider(at + matched, scores_[id] + so_far, id);
        covered = covered || matched == length;
      });
      if (!covered) {
        if (unknown_ == StringMap::kNone)
          fail(ErrorCode::kInvalidArgument, "{}: no token covers {}, and there is no unknown token", name_,
               quote_text(word.substr(at, length)));
        consider(at + length, worst_ - kUnknownPenalty + so_far, unknown_);
      }
      at += length;
    }
  }

  /// In reverse, as append_ids() collects.
  void append_unknown(std::string_view text, std::vector<int64_t>& out) const {
    if (const Trie::Match match = trie_.longest_prefix(text); match.length == text.size()) {
      out.push_back(match.id);
      return;
    }
    const auto token_of = [&](char byte) { return byte_tokens_[static_cast<unsigned char>(byte)]; };
    const bool bytes = byte_fallback_ && std::all_of(text.begin(), text.end(), [&](char byte) {
                         return token_of(byte) != StringMap::kNone;
                       });
    if (!bytes) {
      out.push_back(unknown_);
      return;
    }
    for (size_t i = text.size(); i > 0; --i) out.push_back(token_of(text[i - 1]));
  }

  std::string name_;
  bool byte_fallback_;
  uint32_t unknown_ = StringMap::kNone;
  double worst_ = INFINITY;
  std::vector<double> scores_;
  std::vector<uint32_t> byte_tokens_;
  Trie trie_;
};

class WordPieceModel : public WordModel {
 public:
  WordPieceModel(const TokenizerSpec& spec, const TokenTable& tokens)
      : max_length_(static_cast<size_t>(spec.model.max_word_length)) {
    if (!spec.model.unknown_id)
      fail(ErrorCode::kCorruptFile, "{}: a WordPiece model needs an unknown token", spec.name);
    unknown_ = *spec.model.unknown_id;
    for (const VocabularyToken& token : spec.model.vocabulary) {
      const auto id = static_cast<uint32_t>(token.id);
      first_.add(token.text, id);
      if (token.text.starts_with(spec.model.continuing_prefix))
        later_.add(std::string_view(token.text).substr(spec.model.continuing_prefix.size()), id);
    }
  }

  void append_ids(std::string_view word, WordScratch&, std::vector<int64_t>& out) const override {
    const size_t before = out.size();
    bool known = length_of(word) <= max_length_;
    for (size_t at = 0; known && at < word.size();) {
      const Trie::Match match = (at == 0 ? first_ : later_).longest_prefix(word.substr(at));
      known = match.length != 0;
      if (known) out.push_back(match.id);
      at += match.length;
    }
    if (known) return;
    out.resize(before);
    out.push_back(unknown_);
  }

 private:
  static size_t length_of(std::string_view word) {
    return static_cast<size_t>(std::count_if(word.begin(), word.end(), [](char byte) {
      return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
    }));
  }

  size_t max_length_;
  int64_t unknown_;
  Trie first_, later_;
};

}  // namespace

std::vector<uint32_t> byte_token_ids(const TokenTable& tokens) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::vector<uint32_t> ids;
  for (size_t byte = 0; byte < 256; ++byte)
    ids.push_back(tokens.find(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">"));
  return ids;
}

std::unique_ptr<WordModel> make_unigram(const TokenizerSpec& spec, const TokenTable& tokens) {
  return std::make_unique<UnigramModel>(spec, tokens);
}

std::unique_ptr<WordModel> make_word_piece(const TokenizerSpec& spec, const TokenTable& tokens) {
  return std::make_unique<WordPieceModel>(spec, tokens);
}

}  // namespace halftone
