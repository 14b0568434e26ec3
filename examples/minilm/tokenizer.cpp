#include "minilm/tokenizer.h"

#include <algorithm>
#include <fstream>

#include "halftone/base/error.h"
#include "minilm/text.h"

namespace minilm {
namespace {

using halftone::Error;
using halftone::ErrorCode;

/// Longer words are noise (URLs, base64) and would make the greedy search quadratic.
constexpr size_t kMaxWordLength = 100;

}  // namespace

Tokenizer Tokenizer::from_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::kNotFound, path + ": can't be opened");
  std::vector<std::string> vocabulary;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    vocabulary.push_back(std::move(line));
  }
  return Tokenizer(vocabulary, path);
}

Tokenizer::Tokenizer(const std::vector<std::string>& vocabulary, const std::string& name) {
  ids_.reserve(vocabulary.size());
  for (const std::string& token : vocabulary) {
    if (!ids_.emplace(token, static_cast<int64_t>(ids_.size())).second) {
      throw Error(ErrorCode::kCorruptFile, name + ": line " + std::to_string(ids_.size() + 1) + ": token \"" +
                                               token + "\" stands twice");
    }
  }
  pad_ = special_id("[PAD]", name);
  unknown_ = special_id("[UNK]", name);
  begin_ = special_id("[CLS]", name);
  end_ = special_id("[SEP]", name);
}

int64_t Tokenizer::special_id(const std::string& token, const std::string& name) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) throw Error(ErrorCode::kCorruptFile, name + ": token " + token + " is missing");
  return found->second;
}

std::vector<int64_t> Tokenizer::encode(std::string_view text, size_t max_tokens) const {
  if (max_tokens < 2)
    throw Error(ErrorCode::kInvalidArgument, "max_tokens must be at least 2: [CLS] and [SEP]");
  std::vector<int64_t> ids{begin_};
  for (const std::u32string& word : split_words(text)) {
    append_pieces(word, ids);
    if (ids.size() >= max_tokens) break;
  }
  ids.resize(std::min(ids.size(), max_tokens - 1));
  ids.push_back(end_);
  return ids;
}

// Greedy: the longest piece that the vocabulary holds, then the same for the rest with "##" before it. One
// part that nothing matches makes the whole word unknown.
void Tokenizer::append_pieces(std::u32string_view word, std::vector<int64_t>& out) const {
  const size_t before = out.size();
  bool known = word.size() <= kMaxWordLength;
  for (size_t begin = 0; known && begin < word.size();) {
    size_t length = word.size() - begin;
    for (; length > 0; --length) {
      const std::string piece = (begin == 0 ? "" : "##") + encode_utf8(word.substr(begin, length));
      const auto found = ids_.find(piece);
      if (found == ids_.end()) continue;
      out.push_back(found->second);
      break;
    }
    known = length > 0;
    begin += length;
  }
  if (!known) {
    out.resize(before);
    out.push_back(unknown_);
  }
}

TokenBatch Tokenizer::encode_batch(const std::vector<std::string>& texts, size_t max_tokens) const {
  std::vector<std::vector<int64_t>> encoded;
  size_t columns = 0;
  for (const std::string& text : texts) {
    encoded.push_back(encode(text, max_tokens));
    columns = std::max(columns, encoded.back().size());
  }
  TokenBatch batch{static_cast<int64_t>(texts.size()), static_cast<int64_t>(columns), {}, {}};
  for (const std::vector<int64_t>& row : encoded) {
    const size_t padding = columns - row.size();
    batch.ids.insert(batch.ids.end(), row.begin(), row.end());
    batch.ids.insert(batch.ids.end(), padding, pad_);
    batch.mask.insert(batch.mask.end(), row.size(), 1);
    batch.mask.insert(batch.mask.end(), padding, 0);
  }
  return batch;
}

}  // namespace minilm
