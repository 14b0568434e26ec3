// Modules of C++: capture, then the whole flow. Their nodes know fewer layers than exported ones.
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "halftone/capture/capture_module.h"
#include "quant/ptq/test_models.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;

struct SmallNet : torch::nn::Module {
  SmallNet() {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("fc", fc);
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = at::relu(bn1(conv1(x)));
    const at::Tensor z = at::max_pool2d(at::relu(conv2(y).add_(y)), {2, 2});
    return at::relu(fc(z.flatten(1)));
  }
  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions(3, 4, 3).padding(1).bias(false)};
  torch::nn::BatchNorm2d bn1{4};
  torch::nn::Conv2d conv2{torch::nn::Conv2dOptions(4, 4, 1)};
  torch::nn::Linear fc{4 * 4 * 4, 5};
};

TEST(PtqCppModules, TheWholeFlow) {
  at::manual_seed(5);
  auto net = std::make_shared<SmallNet>();
  net->eval();
  const at::Tensor x = at::randn({2, 3, 8, 8});
  const auto module = capture(
      *net,
      [&](const std::vector<c10::IValue>& args) { return c10::IValue(net->forward(args[0].toTensor())); },
      {x});
  PreparedModel prepared = prepare(*module, plain_mapping(), {x}, builtin_backend_config("native"));
  EXPECT_THAT(pattern_lines(prepared.patterns()),
              ElementsAre("torch.ao.nn.intrinsic.ConvReLU2d @ conv1",
                          "torch.nn.functional.relu(torch.add(torch.nn.Conv2d, *)) @ conv2",
                          ::testing::StartsWith("torch.nn.functional.max_pool2d"),
                          ::testing::StartsWith("torch.flatten"), "torch.ao.nn.intrinsic.LinearReLU @ fc"));
  prepared.calibrate({x});
  const ConvertResult result = convert(prepared);
  EXPECT_THAT(result.report.folded, ElementsAre("bn1"));
  EXPECT_TRUE(result.report.float_operations.empty()) << result.report.to_text();
  const at::Tensor wanted = net->forward(x), given = first_output(result.module, x);
  EXPECT_LT((given - wanted).abs().max().item<float>(), 0.05 * wanted.abs().max().item<float>());
}

}  // namespace
}  // namespace halftone
