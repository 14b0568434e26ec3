// Small C++ models of every kind that people train, for tests and benchmarks of compiled training.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "halftone/capture/capture_module.h"

namespace halftone {

struct TrainingModel {
  std::string name;
  std::shared_ptr<torch::nn::Module> module;
  ForwardFunction forward;
  std::vector<c10::IValue> examples;  ///< of floating point: they require grad
  bool capturable = true;             ///< false: what it does to autograd is lost in a captured graph
};

/// Made anew with the same weights at each call.
std::vector<TrainingModel> training_models();
TrainingModel training_model(const std::string& name);

/// A character model: embedding, positions, causal encoder layers (pre-norm), head. ids (batch, length) →
/// logits.
TrainingModel character_transformer(int64_t vocabulary, int64_t width, int64_t layers, int64_t batch,
                                    int64_t length);

}  // namespace halftone
