// qat_digits DIGITS.safetensors MODEL.ht: trains a small network on handwritten digits, makes its weights
// 4-bit in two ways, by rounding what was trained (PTQ) and by training on with rounded weights (QAT), and
// counts right answers. The second is shipped as one file and run compiled.
#include <torch/nn/modules/linear.h>

#include <cstdio>

#include "digits.h"
#include "halftone/capture/capture_module.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/compile/compile.h"
#include "halftone/quant/qat.h"

namespace {

struct Net : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(64, 16))};
  torch::nn::Linear middle{register_module("middle", torch::nn::Linear(16, 16))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(16, 10))};
  at::Tensor forward(const at::Tensor& images) { return out(torch::relu(middle(torch::relu(in(images))))); }
};

void copy_parameters(const Net& from, Net& to) {
  const at::NoGradGuard no_grad;
  const auto parameters = from.named_parameters();
  for (auto& item : to.named_parameters()) item.value().copy_(parameters[item.key()]);
}

void run(const std::string& data, const std::string& model_path) {
  const digits::Digits training = digits::load(data, 0), test = digits::load(data, 1);
  const auto right = [&](Net& net) {
    const at::NoGradGuard no_grad;
    return digits::percent_right(net.forward(test.images), test.labels);
  };
  torch::manual_seed(7);
  Net rounded, trained;
  digits::train(rounded, training, 30, 1e-2);
  copy_parameters(rounded, trained);

  // Twenty epochs more in float32, then rounded.
  digits::train(rounded, training, 20, 2e-3);
  const double exact = right(rounded);
  halftone::quantize_(rounded, "int4wo");

  // The same twenty epochs, in which products get weights that are rounded to 4 bits. The forward code stays
  // as it is.
  halftone::prepare_qat(trained, "int4wo");
  digits::train(trained, training, 20, 2e-3);
  halftone::convert_qat(trained);
  std::printf("right answers: %.2f %% in float32, %.2f %% with 4 bits (PTQ), %.2f %% with 4 bits (QAT)\n",
              exact, right(rounded), right(trained));

  halftone::CaptureOptions options;
  options.name = "digits";
  options.input_names = {"images"};
  options.dynamic = {{"images", 0, "batch"}};
  const auto graph = halftone::capture(trained, std::tuple(test.images.slice(0, 0, 8)), options);
  halftone::save_checkpoint(*graph, model_path);
  const auto shipped = halftone::load_checkpoint(model_path);
  halftone::Session session(shipped, halftone::compile(shipped));
  const double small = digits::percent_right(session({test.images}).toTensor(), test.labels);
  std::printf("as shipped: %.2f %%\n", small);
  if (small < exact - 1 || small < right(rounded))
    throw halftone::Error(halftone::ErrorCode::kInternal, "too many wrong answers");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: qat_digits DIGITS.safetensors MODEL.ht\n"), 2;
  try {
    run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "qat_digits: %s\n", error.what()), 1;
  }
}
