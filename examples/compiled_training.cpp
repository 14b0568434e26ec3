// Trains a classifier of digits with compiled steps, beside the same training uncompiled.
//   compiled_training DIGITS.safetensors [BACKEND]
#include <halftone/base/error.h>
#include <halftone/compile/compile_module.h>
#include <halftone/graph/tensor_file.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/utils.h>

#include <cstdio>
#include <iostream>

namespace {

using Step = std::function<at::Tensor(const at::Tensor&)>;

/// Trains for some steps; gives the last loss. `step`: from images to logits.
double train(const torch::nn::Sequential& net, const Step& step, const at::Tensor& images,
             const at::Tensor& labels) {
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(2e-3));
  double last = 0;
  for (int i = 0; i < 200; ++i) {
    const int64_t first = i * 128 % (images.size(0) - 128);
    const at::Tensor logits = step(images.slice(0, first, first + 128));
    const at::Tensor loss = torch::nn::functional::cross_entropy(logits, labels.slice(0, first, first + 128));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
  }
  return last;
}

torch::nn::Sequential make_net() {
  torch::manual_seed(7);
  return torch::nn::Sequential(torch::nn::Linear(64, 128), torch::nn::BatchNorm1d(128),
                               torch::nn::Functional(at::relu), torch::nn::Linear(128, 10));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: compiled_training DIGITS.safetensors [BACKEND]\n";
    return 2;
  }
  try {
    const auto data = halftone::load_tensors(argv[1]).tensors;
    const at::Tensor images = data.at("images").to(at::kFloat) / 16, labels = data.at("labels").to(at::kLong);

    auto net = make_net();
    const double eager = train(
        net, [&](const at::Tensor& x) { return net->forward(x); }, images, labels);

    auto compiled_net = make_net();
    auto impl = compiled_net.ptr();
    halftone::CompileModuleOptions options;
    options.backend = argc > 2 ? argv[2] : "aot_eager";
    const auto compiled = halftone::compile(
        impl,
        [impl](const std::vector<c10::IValue>& args) -> c10::IValue {
          return impl->forward(args[0].toTensor());
        },
        options);
    const double fast = train(
        compiled_net, [&](const at::Tensor& x) { return compiled({x}).toTensor(); }, images, labels);

    const auto counters = compiled.counters();
    std::printf("loss after 200 steps: eager %.6f, %s %.6f (%lld calls, %lld compilations)\n", eager,
                options.backend.c_str(), fast, static_cast<long long>(counters.calls),
                static_cast<long long>(counters.compilations));
    return std::abs(eager - fast) <= 1e-3 * eager ? 0 : 1;
  } catch (const halftone::Error& error) {
    std::cerr << halftone::to_string(error.code()) << ": " << error.what() << "\n";
    return 1;
  }
}
