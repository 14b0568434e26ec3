// static_int8 DIGITS.safetensors MODEL.ht: trains a small convolutional network on handwritten digits in C++,
// calibrates it, ships it in static int8, loads that file and counts right answers. No Python anywhere.
#include "halftone/ptq/static_int8.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <cstdio>

#include "digits.h"
#include "halftone/capture/capture_module.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/compile/compile.h"

namespace {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;

/// Three convolutions with batch norm, the last two with a sum around them, as in a residual network.
struct Net : torch::nn::Module {
  Conv2d conv1{register_module("conv1", Conv2d(Conv2dOptions(1, 16, 3).padding(1).bias(false)))};
  BatchNorm2d norm1{register_module("norm1", BatchNorm2d(16))};
  Conv2d conv2{register_module("conv2", Conv2d(Conv2dOptions(16, 16, 3).padding(1).bias(false)))};
  BatchNorm2d norm2{register_module("norm2", BatchNorm2d(16))};
  Conv2d conv3{register_module("conv3", Conv2d(Conv2dOptions(16, 32, 3).padding(1).stride(2).bias(false)))};
  BatchNorm2d norm3{register_module("norm3", BatchNorm2d(32))};
  torch::nn::AdaptiveAvgPool2d pool{register_module("pool", torch::nn::AdaptiveAvgPool2d(2))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(128, 10))};

  at::Tensor forward(const at::Tensor& images) {
    const at::Tensor x = torch::relu(norm1(conv1(images)));
    const at::Tensor y = torch::relu(norm2(conv2(x)) + x);
    return out(pool(torch::relu(norm3(conv3(y)))).flatten(1));
  }
};

void run(const std::string& data, const std::string& model_path) {
  torch::manual_seed(7);
  Net net;
  digits::Digits seen = digits::load(data, 0), test = digits::load(data, 1);
  for (at::Tensor* images : {&seen.images, &test.images}) *images = images->reshape({-1, 1, 8, 8});
  digits::train(net, seen, 12);
  const at::NoGradGuard no_grad;
  const double exact = digits::percent_right(net.forward(test.images), test.labels);

  // Any number of images at once; calibrated with what it was trained on, 64 images a call.
  halftone::CaptureOptions options;
  options.name = "digits";
  options.input_names = {"images"};
  options.dynamic = {{"images", 0, "batch"}};
  const auto graph = halftone::capture(net, std::tuple(test.images.slice(0, 0, 8)), options);
  std::vector<std::vector<c10::IValue>> calls;
  for (const at::Tensor& part : seen.images.slice(0, 0, 512).split(64)) calls.push_back({part});

  for (const halftone::StaticInt8Bits bits : {halftone::StaticInt8Bits{8, 8}, {7, 8}, {7, 7}}) {
    const auto result =
        halftone::quantize_static(*graph, calls, {.mapping = halftone::static_int8_mapping(bits)});
    if (bits.weight == 7) std::fputs(result.to_text().c_str(), stdout);
    if (!result.lowered.kept.empty())
      throw halftone::Error(halftone::ErrorCode::kInternal, result.lowered.to_text());
    halftone::save_checkpoint(*result.module, model_path);

    // From here on another program on another machine could go on.
    const auto shipped = halftone::load_checkpoint(model_path);
    halftone::Session session(shipped, halftone::compile(shipped));
    const double small = digits::percent_right(session({test.images}).toTensor(), test.labels);
    std::printf("right answers: %.2f %% as trained, %.2f %% in int8 (%d-bit activations, %d-bit weights)\n",
                exact, small, bits.activation, bits.weight);
    if (exact < 95 || small < exact - 0.5)
      throw halftone::Error(halftone::ErrorCode::kInternal, "too many wrong answers");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: static_int8 DIGITS.safetensors MODEL.ht\n"), 2;
  try {
    run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "static_int8: %s\n", error.what()), 1;
  }
}
