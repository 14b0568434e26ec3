// train_and_ship DIGITS.safetensors MODEL.ht: trains a small network on handwritten digits in C++, captures
// it as a graph, makes it 8-bit, ships it as one file, loads that file and runs it compiled. No Python
// anywhere.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>

#include "digits.h"
#include "halftone/capture/capture_module.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/compile/compile.h"
#include "halftone/quant/quantize.h"

namespace {

struct Net : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(64, 128))};
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(128))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(128, 10))};
  at::Tensor forward(const at::Tensor& images) { return out(torch::relu(norm(in(images)))); }
};

void run(const std::string& data, const std::string& model_path) {
  torch::manual_seed(7);
  Net net;
  digits::train(net, digits::load(data, 0), 30);
  const digits::Digits test = digits::load(data, 1);

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
  const double exact = digits::percent_right(net.forward(test.images), test.labels);
  const double small = digits::percent_right(session({test.images}).toTensor(), test.labels);
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
