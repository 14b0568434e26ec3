// Byte-pair encoding: the best pair of neighbours becomes one symbol until no pair is left.
//
// The pairs wait in a heap, so a word of n characters takes n log n. Symbols are a list in one array; an entry of the heap whose
// symbols were merged meanwhile is recognised when it comes up.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "text/byte_alphabet.h"
#include "text/models.h"
#include "text/unicode.h"

namespace halftone {
namespace {

constexpr uint32_t kNoToken = StringMap::kNone;

uint64_t pair_key(uint32_t left, uint32_t right) {
  return uint64_t{left} << 32 | right;
}

class BpeModel : public WordModel {
 public:
  BpeModel(const TokenizerSpec& spec, const TokenTable& tokens, bool byte_level);
  void append_ids(std::string_view word, WordScratch& scratch, std::vector<int64_t>& out) const override;

 private:
  enum Whole : uint8_t { kUnknown, kYes, kNo };

  void add_words(const TokenizerModel& model, const TokenTable& tokens);
  void add_merges(const TokenizerSpec& spec, const TokenTable& tokens);
  void add_merges_by_score(const TokenizerSpec& spec, const TokenTable& tokens);

  void start_symbols(std::string_view word, std::vector<WordScratch::Symbol>& symbols) const;
  bool add_fallback(std::string_view character, std::vector<WordScratch::Symbol>& symbols) const;
  void merge_symbols(WordScratch& scratch) const;
  void push_pair(const WordScratch::Symbol* symbols, uint32_t at,
                 std::vector<WordScratch::Candidate>& heap) const;

  bool byte_level_, byte_fallback_, fuse_unknown_, ignore_merges_;
  uint32_t unknown_ = kNoToken;
  StringMap words_;                    ///< tokens as words are given: bytes or UTF-8
  NumberMap chars_;                    ///< tokens of one character, by code point
  std::array<uint32_t, 256> bytes_{};  ///< byte-level: tokens of one byte
  std::vector<uint32_t> byte_tokens_;  ///< "<0x00>", …
  NumberMap merges_;                   ///< pair to rank << 32 | token
  /// Whether merging a token's own text gives that token, by id: then a word that is a token needs no merging. Found out
  /// at its first use; threads that do so at the same time write the same.
  std::unique_ptr<std::atomic<uint8_t>[]> whole_;
};

BpeModel::BpeModel(const TokenizerSpec& spec, const TokenTable& tokens, bool byte_level)
    : byte_level_(byte_level),
      byte_fallback_(spec.model.byte_fallback),
      fuse_unknown_(spec.model.fuse_unknown),
      ignore_merges_(spec.model.ignore_merges),
      words_(spec.model.vocabulary.size()),
      byte_tokens_(byte_token_ids(tokens)),
      merges_(spec.model.merges.size()),
      whole_(new std::atomic<uint8_t>[static_cast<size_t>(tokens.bound())]()) {
  if (spec.model.unknown_id) unknown_ = static_cast<uint32_t>(*spec.model.unknown_id);
  bytes_.fill(kNoToken);
  add_words(spec.model, tokens);
  if (spec.model.merges_by_score) {
    add_merges_by_score(spec, tokens);
  } else {
    add_merges(spec, tokens);
  }
}

void BpeModel::add_words(const TokenizerModel& model, const TokenTable& tokens) {
  for (const VocabularyToken& token : model.vocabulary) {
    const auto id = static_cast<uint32_t>(token.id);
    std::string text = token.text;
    if (byte_level_) {
      // A token with other characters stands for itself as an added token, but no text leads to it here.
      auto bytes = bytes_of_token(text);
      if (!bytes) continue;
      text = std::move(*bytes);
      if (text.size() == 1) bytes_[static_cast<unsigned char>(text[0])] = id;
    } else if (!text.empty()) {
      const Char c = char_at(text, 0);
      if (c.length == text.size()) chars_.set(c.code, id);
    }
    words_.add(text, id);
  }
}

void BpeModel::add_merges(const TokenizerSpec& spec, const TokenTable& tokens) {
  const auto id_of = [&](const std::string& text, size_t index) {
    const uint32_t id = tokens.find(text);
    if (id == kNoToken)
      fail(ErrorCode::kCorruptFile, "{}: merge {}: {} is not in the vocabulary", spec.name, index,
           quote_text(text));
    return id;
  };
  for (size_t i = 0; i < spec.model.merges.size(); ++i) {
    const auto& [left, right] = spec.model.merges[i];
    const uint64_t pair = pair_key(id_of(left, i), id_of(right, i));
    merges_.set(pair, uint64_t{i} << 32 | id_of(left + right, i));
  }
}

// As SentencePiece merges: whichever two neighbours make a token. Equal scores have equal ranks, so that the leftmost wins.
void BpeModel::add_merges_by_score(const TokenizerSpec& spec, const TokenTable& tokens) {
  std::vector<const VocabularyToken*> sorted;
  for (const VocabularyToken& token : spec.model.vocabulary) {
    if (!std::isfinite(token.score))
      fail(ErrorCode::kCorruptFile, "{}: the score of token {} is not finite", spec.name,
           quote_text(token.text));
    if (!byte_of_token(token.text)) sorted.push_back(&token);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->score > b->score; });
  uint64_t rank = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const std::string_view text = sorted[i]->text;
    if (i > 0 && sorted[i]->score < sorted[i - 1]->score) ++rank;
    for (size_t at = 0; at < text.size();) {
      at += char_at(text, at).length;
      if (at == text.size()) break;
      const uint32_t left = words_.find(text.substr(0, at)), right = words_.find(text.substr(at));
      if (left != kNoToken && right != kNoToken)
        merges_.set(pair_key(left, right), rank << 32 | static_cast<uint32_t>(sorted[i]->id));
    }
  }
}

bool BpeModel::add_fallback(std::string_view character, std::vector<WordScratch::Symbol>& symbols) const {
  const auto token_of = [&](char byte) { return byte_tokens_[static_cast<unsigned char>(byte)]; };
  if (std::any_of(character.begin(), character.end(), [&](char byte) { return token_of(byte) == kNoToken; }))
    return false;
  for (const char byte : character) symbols.push_back({token_of(byte), 0, 0});
  return true;
}

// An unknown token waits until the next known one, as in the `tokenizers` package: with byte_fallback it may come after bytes.
void BpeModel::start_symbols(std::string_view word, std::vector<WordScratch::Symbol>& symbols) const {
  symbols.clear();
  bool waiting = false;
  const auto end_waiting = [&] {
    if (waiting) symbols.push_back({unknown_, 0, 0});
    waiting = false;
  };
  for (size_t at = 0; at < word.size();) {
    const Char c = byte_level_ ? Char{static_cast<unsigned char>(word[at]), 1} : char_at(word, at);
    const uint32_t id = byte_level_ ? bytes_[c.code] : static_cast<uint32_t>(chars_.get(c.code));
    const std::string_view character = word.substr(at, c.length);
    at += c.length;
    if (id != kNoToken) {
      end_waiting();
      symbols.push_back({id, 0, 0});
      continue;
    }
    if (byte_fallback_) {
      std::string written;
      if (byte_level_) append_utf8(char_of_byte(static_cast<uint8_t>(c.code)), written);
      if (add_fallback(byte_level_ ? written : character, symbols)) continue;
    }
    if (unknown_ == kNoToken) continue;
    if (!fuse_unknown_) end_waiting();
    waiting = true;
  }
  end_waiting();
  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = i == 0 ? WordScratch::kEnd : static_cast<uint32_t>(i - 1);
    symbols[i].next = i + 1 == symbols.size() ? WordScratch::kEnd : static_cast<uint32_t>(i + 1);
  }
}

struct LaterCandidate {
  bool operator()(const WordScratch::Candidate& a, const WordScratch::Candidate& b) const {
    return a.order > b.order;
  }
};

/// Appends the candidate of the symbol at `at` and its next one, if they merge. The caller keeps the heap.
void BpeModel::push_pair(const WordScratch::Symbol* symbols, uint32_t at,
                         std::vector<WordScratch::Candidate>& heap) const {
  const uint64_t merge = merges_.get(pair_key(symbols[at].id, symbols[symbols[at].next].id));
  if (merge == NumberMap::kNoKey) return;
  heap.push_back({(merge >> 32) << 32 | at, static_cast<uint32_t>(merge)});
}

void BpeModel::merge_symbols(WordScratch& scratch) const {
  auto& heap = scratch.heap;
  WordScratch::Symbol* symbols = scratch.symbols.data();
  heap.clear();
  for (uint32_t i = 0; i + 1 < scratch.symbols.size(); ++i) push_pair(symbols, i, heap);
  std::make_heap(heap.begin(), heap.end(), LaterCandidate{});
  const auto push = [&](uint32_t at) {
    const size_t before = heap.size();
    push_pair(symbols, at, heap);
    if (heap.size() != before) std::push_heap(heap.begin(), heap.end(), LaterCandidate{});
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), LaterCandidate{});
    const WordScratch::Candidate top = heap.back();
    heap.pop_back();
    const auto at = static_cast<uint32_t>(top.order);
    WordScratch::Symbol& left = symbols[at];
    if (left.id == kNoToken || left.next == WordScratch::kEnd) continue;
    WordScratch::Symbol& right = symbols[left.next];
    // The symbols may be others by now; what counts is that they still make the same token.
    const uint64_t merge = merges_.get(pair_key(left.id, right.id));
    if (merge == NumberMap::kNoKey || static_cast<uint32_t>(merge) != top.merged) continue;
    left.id = top.merged;
    left.next = right.next;
    right.id = kNoToken;
    if (left.next != WordScratch::kEnd) {
      symbols[left.next].previous = at;
      push(at);
    }
    if (left.previous != WordScratch::kEnd) push(left.previous);
  }
}

void BpeModel::append_ids(std::string_view word, WordScratch& scratch, std::vector<int64_t>& out) const {
  const uint32_t id = words_.find(word);
  if (id != kNoToken) {
    const uint8_t whole = ignore_merges_ ? uint8_t{kYes} : whole_[id].load(std::memory_order_relaxed);
    if (whole == kYes) {
      out.push_back(id);
      return;
    }
  }
  start_symbols(word, scratch.symbols);
  merge_symbols(scratch);
  const size_t before = out.size();
  for (const WordScratch::Symbol& symbol : scratch.symbols) {
    if (symbol.id != kNoToken) out.push_back(symbol.id);
  }
  if (id != kNoToken) {
    const bool same = out.size() == before + 1 && out.back() == static_cast<int64_t>(id);
    whole_[id].store(same ? kYes : kNo, std::memory_order_relaxed);
  }
}

}  // namespace

std::unique_ptr<WordModel> make_bpe(const TokenizerSpec& spec, const TokenTable& tokens, bool byte_level) {
  return std::make_unique<BpeModel>(spec, tokens, byte_level);
}

}  // namespace halftone
