// A decoder as a C++ module: what capture() makes a graph of.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "decoder/source/weights.h"

namespace halftone {

/// Tokens at given positions of one sequence, against a cache of the keys and values before them.
///
/// forward(tokens [1, t], positions [t], keep [t, n], near [t, n]): logits [1, 1, vocabulary] of the last token. Row i of
/// `keep` says which of the first n places of the cache token i may look at; `near` says it for layers with a window, and
/// is undefined where the window is no shorter than the cache. Positions say where the tokens' own keys and values go. n is
/// the caller's choice, so that a call reads no more of the cache than it needs.
///
/// The cache is a buffer, written in place: state of a Session. Parameters have the names that transformers gives them.
/// All architectures are this one module: what differs is in the config, and in which weights are there.
class DecoderModel : public torch::nn::Module {
 public:
  /// `context`: places of the cache.
  DecoderModel(const DecoderConfig& config, DecoderWeights weights, int64_t context);
  ~DecoderModel() override;

  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& positions, const at::Tensor& keep,
                     const at::Tensor& near = {});

 private:
  class Layer;
  struct Turn {
    at::Tensor cosines, sines;  ///< [context, head width]; in a call [t, 1, head width]
  };

  DecoderConfig config_;  ///< the layers refer to it
  at::Tensor embedding_, positions_, head_;
  BiasedWeight norm_;
  std::vector<Turn> turns_;  ///< one for each of DecoderConfig::rotaries
  std::vector<std::shared_ptr<Layer>> layers_;
};

}  // namespace halftone
