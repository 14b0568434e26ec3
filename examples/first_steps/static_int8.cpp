// static_int8: a convolution, calibrated on a few images, runs on bytes.
#include <halftone/halftone.h>
#include <torch/nn/modules/conv.h>

#include <iostream>

struct Net : torch::nn::Module {
  torch::nn::Conv2d conv{register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 3)))};
  at::Tensor forward(const at::Tensor& x) { return at::relu(conv(x)); }
};

int main() {
  Net net;
  const auto graph = halftone::capture(net, std::tuple(at::rand({1, 3, 16, 16})));
  std::vector<std::vector<c10::IValue>> images;
  for (int i = 0; i < 8; ++i) images.push_back({at::rand({1, 3, 16, 16})});
  const auto result = halftone::quantize_static(*graph, images);
  std::cout << result.to_text() << "cosine to float: " << result.cosine << "\n";
  return result.cosine > 0.99 ? 0 : 1;
}
