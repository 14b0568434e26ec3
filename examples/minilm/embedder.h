// Sentences to vectors of length 1: tokenizer, any encoder that maps (ids, mask) to hidden states, mean
// pooling.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "minilm/encoder.h"
#include "minilm/tokenizer.h"

namespace minilm {

struct TokenTensors {
  at::Tensor ids, mask;  ///< int64 (rows, columns)
};
TokenTensors token_tensors(const TokenBatch& batch);

/// Called with ids and mask; gives hidden states (rows, columns, width).
using EncoderFunction = std::function<at::Tensor(const at::Tensor& ids, const at::Tensor& mask)>;

/// The mean over the tokens that the mask keeps, scaled to length 1: (rows, width).
at::Tensor mean_pool(const at::Tensor& hidden, const at::Tensor& mask);

at::Tensor embed(const EncoderFunction& encoder, const Tokenizer& tokenizer,
                 const std::vector<std::string>& sentences);

}  // namespace minilm
