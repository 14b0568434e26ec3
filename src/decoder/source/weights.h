// A decoder's weights by their place in the model.
#pragma once

#include "decoder/source/config.h"
#include "decoder/source/weight_source.h"
#include "halftone/base/progress.h"

namespace halftone {

/// y = x · weightᵀ + bias
struct LinearWeights {
  at::Tensor weight;  ///< [outputs, inputs]
  at::Tensor bias;    ///< [outputs], or undefined
};

/// The weights of one layer. Norms that the architecture has not are undefined.
struct DecoderLayerWeights {
  at::Tensor attention_norm, feed_forward_norm;              ///< before
  at::Tensor attention_after_norm, feed_forward_after_norm;  ///< after
  LinearWeights query, key, value, attention_output;
  at::Tensor query_norm, key_norm;  ///< [head width], or [heads · head width]: over all heads
  LinearWeights gate, up, down;
};

struct DecoderWeights {
  at::Tensor embedding;  ///< [vocabulary, width]
  at::Tensor norm;
  at::Tensor head;  ///< [vocabulary, width]; undefined: the embedding
  std::vector<DecoderLayerWeights> layers;
};

/// All of them as float32, in the form that DecoderModel computes with: numbers of a head that turn together are half a
/// head apart, joined linears are apart, the config's factors and offsets are in the weights.
///
/// Throws kCorruptFile with a list of what is missing, what nothing asked for and what has another shape than the
/// config says; kUnsupported for types of tensors that cannot be read.
DecoderWeights read_decoder_weights(const WeightSource& source, const DecoderConfig& config,
                                    const ProgressCallback& progress = nullptr);

}  // namespace halftone
