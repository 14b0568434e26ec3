// train_and_ship DIGITS.safetensors MODEL.ht: trains a small network on handwritten digits in C++, captures
// it as a graph, makes it 8-bit, ships it as one file, loads that file and runs it compiled. No Python
// anywhere.
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include <cstdio>

#include "halftone/capture_module.h"
#include "halftone/checkpoint.h"
#include "halftone/compile.h"
#include "halftone/quantize.h"
#include "halftone/tensor_file.h"

namespace {

struct Net : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(64, 128))};
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(128))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(128, 10))};
  at::Tensor forward(const at::Tensor& images) { return out(torch::relu(norm(in(images)))); }
};

struct Digits {
  at::Tensor images, labels;
};

/// Every second image, from the given one on: 0 for training, 1 for testing.
Digits load_digits(const std::string& path, int64_t start) {
  const auto tensors = halftone::load_tensors(path).tensors;
  const auto half = [&](const char* name, at::ScalarType type) {
    return tensors.at(name).slice(0, start, std::nullopt, 2).to(type);
  };
  return {half("images", at::kFloat) / 16, half("labels", at::kLong)};
}

void train(Net& net, const Digits& digits) {
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(3e-3));
  for (int epoch = 0; epoch < 30; ++epoch) {
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

double percent_right(const at::Tensor& logits, const at::Tensor& labels) {
  return 100 * logits.argmax(1).eq(labels).to(at::kDouble).mean().item<double>();
}

void run(const std::string& data, const std::string& model_path) {
  torch::manual_seed(7);
  Net net;
  train(net, load_digits(data, 0));
  const Digits test = load_digits(data, 1);

  // Any number of images at once: the graph is traced at several sizes, and holds for all.
  halftone::CaptureOptions options;
  options.name = "digits";
  options.input_names = {"images"};
  options.dynamic = {{"images", 0, "batch"}};
  const auto graph = halftone::capture(net, std::tuple(test.images.slice(0, 0, 8)), options);
  std::fputs(halftone::quantize_(*graph, "int8dq").to_text().c_str(), stdout);
  halftone::save_checkpoint(*graph, model_path);

  // From here on another program on another machine could go on.
  const auto shipped = halftone::load_checkpoint(model_path);
  halftone::Session session(shipped, halftone::compile(shipped));
  const at::NoGradGuard no_grad;
  const double exact = percent_right(net.forward(test.images), test.labels);
  const double small = percent_right(session({test.images}).toTensor(), test.labels);
  std::printf("right answers: %.2f %% as trained, %.2f %% as shipped\n", exact, small);
  if (exact < 90 || small < exact - 1)
    throw halftone::Error(halftone::ErrorCode::kInternal, "too many wrong answers");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: train_and_ship DIGITS.safetensors MODEL.ht\n"), 2;
  try {
    run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "train_and_ship: %s\n", error.what()), 1;
  }
}
