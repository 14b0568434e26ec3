// compile: a drop-in for a C++ module, compiled at its first call.
#include <halftone/halftone.h>
#include <torch/nn/modules/linear.h>

#include <iostream>

int main() {
  const torch::nn::Linear layer(64, 8);
  const auto fast = halftone::compile(layer.ptr());
  const at::NoGradGuard inference;
  const at::Tensor x = at::randn({4, 64});
  const bool same = at::allclose(fast(x), layer.ptr()->forward(x), 1e-4, 1e-5);
  std::cout << "same answer: " << std::boolalpha << same << "\n";
  return same ? 0 : 1;
}
