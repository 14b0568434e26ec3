// For the oracle test: qat_tool FILE.safetensors CONFIG_JSON SCALES STEPS RATE. A perceptron with the file's
// weights (fc1, fc2) is prepared and trained on its x and labels, with plain gradient descent; prints the
// loss of each step, then that of the prepared module in evaluation.
#include <ATen/ops/cross_entropy_loss.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <cstdlib>

#include "halftone/base/error.h"
#include "halftone/graph/tensor_file.h"
#include "halftone/quant/qat.h"

namespace {

struct Perceptron : torch::nn::Module {
  explicit Perceptron(const halftone::TensorMap& tensors) {
    const auto linear = [&](const std::string& name) {
      const at::Tensor& weight = tensors.at(name + ".weight");
      torch::nn::Linear made(weight.size(1), weight.size(0));
      const at::NoGradGuard no_grad;
      made->weight.copy_(weight);
      made->bias.copy_(tensors.at(name + ".bias"));
      return register_module(name, made);
    };
    fc1 = linear("fc1");
    fc2 = linear("fc2");
  }
  at::Tensor forward(const at::Tensor& x) { return fc2(at::relu(fc1(x))); }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
};

halftone::QatScales scales_named(const std::string& name) {
  if (name == "learned") return halftone::QatScales::kLearned;
  return name == "average" ? halftone::QatScales::kMovingAverage : halftone::QatScales::kRange;
}

void run(char** argv) {
  const halftone::TensorMap tensors = halftone::load_tensors(argv[1]).tensors;
  Perceptron net(tensors);
  halftone::QatOptions options;
  options.scales = scales_named(argv[3]);
  halftone::prepare_qat(net, halftone::QuantConfig::from_json(argv[2]), options);
  torch::optim::SGD optimizer(net.parameters(), std::atof(argv[5]));
  const at::Tensor x = tensors.at("x"), labels = tensors.at("labels");
  const int64_t steps = std::atoll(argv[4]), batch = x.size(0) / steps;
  for (int64_t step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = at::cross_entropy_loss(net.forward(x.narrow(0, step * batch, batch)),
                                                   labels.narrow(0, step * batch, batch));
    loss.backward();
    optimizer.step();
    fmt::print("{:.9g}\n", loss.item<double>());
  }
  net.eval();
  fmt::print("{:.9g}\n", at::cross_entropy_loss(net.forward(x), labels).item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  try {
    run(argv);
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    return 1;
  }
  return 0;
}
