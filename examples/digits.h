// Handwritten digits for the examples: reading them, training on them, counting right answers.
#pragma once

#include <torch/nn/functional/loss.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include <string>

#include "halftone/graph/tensor_file.h"

namespace digits {

struct Digits {
  at::Tensor images;  ///< [count, 64], from 0 to 1
  at::Tensor labels;
};

/// Every second image, from the given one on: 0 for training, 1 for testing.
inline Digits load(const std::string& path, int64_t start) {
  const auto tensors = halftone::load_tensors(path).tensors;
  const auto half = [&](const char* name, at::ScalarType type) {
    return tensors.at(name).slice(0, start, std::nullopt, 2).to(type);
  };
  return {half("images", at::kFloat) / 16, half("labels", at::kLong)};
}

template <typename Net>
void train(Net& net, const Digits& digits, int epochs, double rate = 3e-3) {
  net.train();
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(rate));
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const at::Tensor order = torch::randperm(digits.labels.size(0));
    for (const at::Tensor& rows : order.split(64)) {
      optimizer.zero_grad();
      const at::Tensor logits = net.forward(digits.images.index_select(0, rows));
      torch::nn::functional::cross_entropy(logits, digits.labels.index_select(0, rows)).backward();
      optimizer.step();
    }
  }
  net.eval();
}

inline double percent_right(const at::Tensor& logits, const at::Tensor& labels) {
  return 100 * logits.argmax(1).eq(labels).to(at::kDouble).mean().item<double>();
}

}  // namespace digits
