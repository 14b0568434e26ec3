// A decoder's weights by their place in the model.
#pragma once

#include "decoder/source/config.h"
#include "decoder/source/weight_source.h"
#include "halftone/base/progress.h"

namespace halftone {

/// Of a linear, weight [outputs, inputs], or of a norm.
struct BiasedWeight {
  at::Tensor weight;
  at::Tensor bias;  ///< undefined: none
};

/// The weights of one layer. What the architecture has not is undefined.
struct DecoderLayerWeights {
  BiasedWeight attention_norm, feed_forward_norm;              ///< before
  BiasedWeight attention_after_norm, feed_forward_after_norm;  ///< after
  BiasedWeight query, key, value, attention_output;
  BiasedWeight query_norm, key_norm;  ///< [head width], or [heads · head width]: over all heads
  BiasedWeight gate, up, down;
};

struct DecoderWeights {
  at::Tensor embedding;  ///< [vocabulary, width]
  BiasedWeight norm;
  at::Tensor head;       ///< [vocabulary, width]; undefined: the embedding
  at::Tensor positions;  ///< [positions, width]; undefined: positions are not learned
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
