#include "minilm/tokenizer.h"

#include <halftone/base/error.h>

#include <algorithm>

namespace minilm {

using halftone::Error;
using halftone::ErrorCode;

std::vector<int64_t> Tokenizer::encode(std::string_view text, size_t max_tokens) const {
  if (max_tokens < 2)
    throw Error(ErrorCode::kInvalidArgument, "max_tokens must be at least 2: [CLS] and [SEP]");
  std::vector<int64_t> ids = tokenizer_.encode(text, {.parse_special = false});
  if (ids.size() > max_tokens) ids.erase(ids.begin() + static_cast<ptrdiff_t>(max_tokens) - 1, ids.end() - 1);
  return ids;
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
    batch.ids.insert(batch.ids.end(), padding, *tokenizer_.pad_id());
    batch.mask.insert(batch.mask.end(), row.size(), 1);
    batch.mask.insert(batch.mask.end(), padding, 0);
  }
  return batch;
}

}  // namespace minilm
