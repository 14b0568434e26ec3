// Plain perceptrons: a wide one, whose weights are most of the work, and one whose layers are so small that a
// call is all overhead.
#include <ATen/ops/relu.h>

#include "bench/suite/builders.h"

namespace halftone {
namespace {

struct SuitePerceptron : torch::nn::Module {
  explicit SuitePerceptron(const std::vector<int64_t>& widths) {
    for (size_t i = 0; i + 1 < widths.size(); ++i)
      layers.push_back(
          register_module("fc" + std::to_string(i), torch::nn::Linear(widths[i], widths[i + 1])));
  }
  at::Tensor forward(at::Tensor x) {
    for (size_t i = 0; i < layers.size(); ++i) {
      x = layers[i](x);
      if (i + 1 < layers.size()) x = at::relu(x);
    }
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};

SuiteModel make_perceptron(const std::vector<int64_t>& widths) {
  return one_tensor_model(std::make_shared<SuitePerceptron>(widths), "features",
                          float_sample({widths.front()}), label_loss);
}

}  // namespace

SuiteModel make_mlp() {
  return make_perceptron({1024, 2048, 2048, 2048, 2048, 1000});
}

SuiteModel make_tiny_mlp() {
  return make_perceptron({32, 48, 48, 32, 16, 8});
}

}  // namespace halftone
