// train: training steps with a compiled forward and backward.
#include <halftone/halftone.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <iostream>

int main() {
  torch::nn::Linear layer(8, 1);
  const auto step = halftone::compile(layer.ptr(), {.backend = "aot_eager"});
  torch::optim::SGD optimizer(layer->parameters(), 0.1);
  const at::Tensor x = at::randn({64, 8}), y = x.sum(1, true);
  double first = 0, last = 0;
  for (int i = 0; i < 50; ++i) {
    const at::Tensor loss = at::mse_loss(step(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
    if (i == 0) first = last;
  }
  std::cout << "loss " << first << " -> " << last << "\n";
  return last < 0.1 * first ? 0 : 1;
}
