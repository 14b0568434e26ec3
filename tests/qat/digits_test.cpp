// What quantization-aware training is for: right answers on real handwritten digits, with 4-bit weights that
// were only rounded and with ones that were trained for it, over five networks.
#include "../../examples/digits.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <map>

#include "halftone/quant/qat.h"
#include "halftone/quant/quantize.h"

namespace {

using namespace halftone;

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

struct Score {
  double exact = 0, rounded = 0, trained = 0;  ///< percent: float32, PTQ, QAT
};

constexpr int kNetworks = 5, kEpochs = 30, kMoreEpochs = 30;
constexpr double kRate = 1e-2, kLowRate = 2e-3;

double percent_right(Net& net, const digits::Digits& test) {
  const at::NoGradGuard no_grad;
  return digits::percent_right(net.forward(test.images), test.labels);
}

/// One network in float32, and what becomes of it with 4 bits. All have been trained equally long.
void score(const digits::Digits& training, const digits::Digits& test, int network,
           std::map<QatScales, Score>& scores) {
  torch::manual_seed(100 + static_cast<uint64_t>(network));
  Net start, net, rounded;
  digits::train(start, training, kEpochs, kRate);
  copy_parameters(start, net);
  digits::train(net, training, kMoreEpochs, kLowRate);
  const double exact = percent_right(net, test);
  copy_parameters(net, rounded);
  quantize_(rounded, "int4wo");
  for (const QatScales scales : {QatScales::kRange, QatScales::kMovingAverage, QatScales::kLearned}) {
    Net trained;
    copy_parameters(start, trained);
    QatOptions options;
    options.scales = scales;
    prepare_qat(trained, "int4wo", options);
    digits::train(trained, training, kMoreEpochs, kLowRate);
    convert_qat(trained);
    const Score one{exact, percent_right(rounded, test), percent_right(trained, test)};
    std::printf("network %d, scales %d: float32 %.2f, PTQ %.2f, QAT %.2f\n", network,
                static_cast<int>(scales), one.exact, one.rounded, one.trained);
    Score& sum = scores[scales];
    sum.exact += one.exact / kNetworks;
    sum.rounded += one.rounded / kNetworks;
    sum.trained += one.trained / kNetworks;
  }
}

TEST(QatOnDigits, BeatsRoundingAndComesCloseToFloat) {
  at::set_num_threads(1);
  const digits::Digits training = digits::load(DIGITS_FILE, 0), test = digits::load(DIGITS_FILE, 1);
  std::map<QatScales, Score> scores;
  for (int network = 0; network < kNetworks; ++network) score(training, test, network, scores);
  for (const auto& [scales, mean] : scores) {
    std::printf("mean, scales %d: float32 %.2f, PTQ %.2f, QAT %.2f\n", static_cast<int>(scales), mean.exact,
                mean.rounded, mean.trained);
    EXPECT_GT(mean.trained, mean.rounded + 0.4);
    EXPECT_GT(mean.trained, mean.exact - 1);
  }
}

}  // namespace
