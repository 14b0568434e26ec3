// A decoder of the Llama family as a C++ module: what capture() makes a graph of.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "decoder/config.h"

namespace halftone {

/// The weights of one layer; [outputs, inputs].
struct DecoderLayerWeights {
  at::Tensor attention_norm, query, key, value, attention_output;
  at::Tensor feed_forward_norm, gate, up, down;
};

struct DecoderWeights {
  at::Tensor embedding;  ///< [vocabulary, width]
  at::Tensor norm;
  at::Tensor head;  ///< [vocabulary, width]; undefined: the embedding
  std::vector<DecoderLayerWeights> layers;
};

/// Tokens at given positions of one sequence, against a cache of the keys and values before them.
///
/// forward(tokens [1, t], positions [t], keep [t, n]): logits [1, 1, vocabulary] of the last token. Row i of `keep` says which of the first n places of the cache token i may look at; positions say where the tokens'
/// own keys and values go. n is the caller's choice, so that a call reads no more of the cache than it needs.
///
/// The cache is a buffer, written in place: state of a Session. Parameters have the names that transformers gives them.
class DecoderModel : public torch::nn::Module {
 public:
  /// `context`: places of the cache.
  DecoderModel(const DecoderConfig& config, DecoderWeights weights, int64_t context);
  ~DecoderModel() override;

  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& positions, const at::Tensor& keep);

 private:
  class Layer;
  double norm_eps_;
  at::Tensor embedding_, norm_, head_;
  at::Tensor cosines_, sines_;  ///< [context, head width]
  std::vector<std::shared_ptr<Layer>> layers_;
};

}  // namespace halftone
