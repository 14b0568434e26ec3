#include "minilm/embedder.h"

#include <ATen/ops/tensor.h>

namespace minilm {

TokenTensors token_tensors(const TokenBatch& batch) {
  const std::vector<int64_t> shape{batch.rows, batch.columns};
  return {at::tensor(batch.ids).view(shape), at::tensor(batch.mask).view(shape)};
}

at::Tensor mean_pool(const at::Tensor& hidden, const at::Tensor& mask) {
  const at::Tensor weights = mask.to(hidden.scalar_type()).unsqueeze(-1);
  const at::Tensor mean = (hidden * weights).sum(1) / weights.sum(1).clamp_min(1);
  return mean / mean.norm(2, -1, /*keepdim=*/true).clamp_min(1e-12);
}

at::Tensor embed(const EncoderFunction& encoder, const Tokenizer& tokenizer,
                 const std::vector<std::string>& sentences) {
  const auto [ids, mask] = token_tensors(tokenizer.encode_batch(sentences));
  return mean_pool(encoder(ids, mask), mask);
}

}  // namespace minilm
