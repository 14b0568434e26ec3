#include "decoder/sequence.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/errors.h"

namespace halftone {

namespace {

/// Places of the cache that a call looks at. A plan is made for each number, so there are few of them; the places beyond
/// the last token cost time and are masked.
int64_t places_for(int64_t tokens, int64_t context) {
  constexpr int64_t kFirst = 64, kStep = 256;
  int64_t places = kFirst;
  while (places < tokens && places < kStep) places *= 2;
  if (places < tokens) places = (tokens + kStep - 1) / kStep * kStep;
  return std::min(places, context);
}

}  // namespace

Sequence::Sequence(const CompiledDecoder& decoder)
    : decoder_(decoder), session_(decoder.module, decoder.executor) {}

at::Tensor Sequence::feed(std::span<const int64_t> tokens) {
  if (tokens.empty()) fail(ErrorCode::kInvalidArgument, "there are no tokens to run the model on");
  if (static_cast<int64_t>(tokens.size()) > room()) {
    fail(ErrorCode::kInvalidArgument, "{} tokens do not fit: the context of {} has room for {} more",
         tokens.size(), decoder_.context, room());
  }
  at::Tensor logits;
  while (!tokens.empty()) {
    const size_t count = std::min(tokens.size(), static_cast<size_t>(kChunk));
    logits = feed_chunk(tokens.first(count));
    tokens = tokens.subspan(count);
  }
  return logits;
}

at::Tensor Sequence::feed_chunk(std::span<const int64_t> tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  at::Tensor ids = at::empty({1, count}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), ids.mutable_data_ptr<int64_t>());
  const int64_t places = places_for(size() + count, decoder_.context);
  const at::Tensor logits = session_.run(decoder_.inputs(ids, size(), places))[0].toTensor();
  // Only now: a call that failed may have written places behind the last token, which the next call writes again.
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return logits;
}

void Sequence::truncate(int64_t size) {
  if (size < 0 || size > this->size())
    fail(ErrorCode::kInvalidArgument, "a sequence of {} tokens cannot be cut to {}", this->size(), size);
  tokens_.resize(static_cast<size_t>(size));  // the places behind are masked until they are written again
}

}  // namespace halftone
