// capture: a C++ module becomes a graph that holds for every batch size.
#include <halftone/halftone.h>
#include <torch/nn/modules/linear.h>

#include <iostream>

struct Net : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(16, 32))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(32, 4))};
  at::Tensor forward(const at::Tensor& x) { return out(at::relu(in(x))); }
};

int main() {
  Net net;
  halftone::CaptureOptions options{.input_names = {"x"}};
  options.dynamic = {{.input = "x", .dim = 0, .symbol = "batch"}};
  const auto graph = halftone::capture(net, std::tuple(at::randn({2, 16})), options);
  const at::Tensor x = at::randn({7, 16});
  const bool same = at::allclose(halftone::Session(graph)({x}).toTensor(), net.forward(x));
  std::cout << graph->graph().nodes().size() << " nodes, same answer: " << std::boolalpha << same << "\n";
  return same ? 0 : 1;
}
