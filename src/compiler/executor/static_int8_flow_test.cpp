// A small ResNet through the whole flow: prepare, calibrate, convert, lower, compile.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"
#include "halftone/compile/compile.h"
#include "halftone/ptq/lower.h"
#include "halftone/ptq/ptq.h"

namespace halftone {
namespace {

/// Writes the graph of a ResNet layer by layer, with weights.
class SmallResNet {
 public:
  SmallResNet() {
    at::manual_seed(41);
    std::string x = conv_norm("x", "stem", 3, 16, 24, 3, 2);
    x = relu(x, "stem.act", 16, 12);
    x = add_node(fmt::format("aten::max_pool2d(%{}, [3, 3], [2, 2], [1, 1])", x), "pool",
                 "torch.nn.modules.pooling.MaxPool2d", sizes(16, 6));
    x = block(x, "block1", 16, 16, 6, 1);
    x = block(x, "block2", 16, 32, 6, 2);
    x = add_node(fmt::format("aten::adaptive_avg_pool2d(%{}, [1, 1])", x), "avg",
                 "torch.nn.modules.pooling.AdaptiveAvgPool2d", sizes(32, 1));
    x = add_node(fmt::format("aten::flatten.using_ints(%{}, 1)", x), "flatten",
                 "torch.nn.modules.flatten.Flatten", "[s0, 32]");
    parameter("fc.weight", at::randn({10, 32}) * 0.2);
    parameter("fc.bias", at::randn({10}));
    x = add_node(fmt::format("aten::linear(%{}, %fc_weight, %fc_bias)", x), "fc",
                 "torch.nn.modules.linear.Linear", "[s0, 10]");
    text_ =
        fmt::format("graph({}%x: user \"x\" f32[s0, 3, 24, 24]) {{\n{}  return %{}\n}}", inputs_, body_, x);
  }

  std::shared_ptr<GraphModule> module() const { return module_from_text(text_, tensors_); }

 private:
  static std::string sizes(int64_t channels, int64_t side) {
    return fmt::format("[s0, {}, {}, {}]", channels, side, side);
  }
  static std::string value_name(std::string name) {
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
  }

  void parameter(const std::string& name, const at::Tensor& tensor) {
    std::string shape;
    for (const int64_t size : tensor.sizes()) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", size);
    inputs_ += fmt::format("%{}: parameter \"{}\" f32[{}], ", value_name(name), name, shape);
    tensors_[name] = tensor;
  }

  std::string add_node(const std::string& call, const std::string& layer, const char* type,
                       const std::string& shape) {
    const std::string name = value_name(layer) + "_out";
    body_ += fmt::format("  %{}: f32{} = {}  @ \"{}\" \"{}\"\n", name, shape, call, layer, type);
    return name;
  }

  std::string conv_norm(const std::string& x, const std::string& layer, int64_t in, int64_t out, int64_t side,
                        int64_t kernel, int64_t stride) {
    const std::string conv = layer + ".conv", norm = layer + ".bn";
    parameter(conv + ".weight", at::randn({out, in, kernel, kernel}) / std::sqrt(in * kernel * kernel / 2.0));
    parameter(norm + ".weight", at::rand({out}) + 0.5);
    parameter(norm + ".bias", at::randn({out}) * 0.1);
    parameter(norm + ".mean", at::randn({out}) * 0.1);
    parameter(norm + ".var", at::rand({out}) + 0.5);
    const std::string shape = sizes(out, side / stride);
    const std::string y =
        add_node(fmt::format("aten::conv2d(%{}, %{}, None, [{}, {}], [{}, {}])", x,
                             value_name(conv + ".weight"), stride, stride, kernel / 2, kernel / 2),
                 conv, "torch.nn.modules.conv.Conv2d", shape);
    const std::string n = value_name(norm);
    return add_node(fmt::format("aten::batch_norm(%{}, %{}_weight, %{}_bias, %{}_mean, %{}_var, false, 0.1, "
                                "1e-05, true)",
                                y, n, n, n, n),
                    norm, "torch.nn.modules.batchnorm.BatchNorm2d", shape);
  }

  std::string relu(const std::string& x, const std::string& layer, int64_t channels, int64_t side) {
    return add_node(fmt::format("aten::relu(%{})", x), layer, "torch.nn.modules.activation.ReLU",
                    sizes(channels, side));
  }

  std::string block(const std::string& x, const std::string& layer, int64_t in, int64_t out, int64_t side,
                    int64_t stride) {
    std::string y = conv_norm(x, layer + ".first", in, out, side, 3, stride);
    y = relu(y, layer + ".act1", out, side / stride);
    y = conv_norm(y, layer + ".second", out, out, side / stride, 3, 1);
    const std::string shortcut =
        in == out && stride == 1 ? x : conv_norm(x, layer + ".shortcut", in, out, side, 1, stride);
    y = add_node(fmt::format("aten::add.Tensor(%{}, %{})", y, shortcut), layer, "Block",
                 sizes(out, side / stride));
    return relu(y, layer + ".act2", out, side / stride);
  }

  std::string inputs_, body_, text_;
  TensorMap tensors_;
};

class StaticInt8Flow : public testing::TestWithParam<StaticInt8Bits> {};

TEST_P(StaticInt8Flow, SmallResNetStaysCloseToItsReferenceGraph) {
  const auto module = SmallResNet().module();
  const at::Tensor samples = at::randn({8, 3, 24, 24});
  PreparedModel prepared = prepare(*module, static_int8_mapping(GetParam()), {samples.slice(0, 0, 2)},
                                   builtin_backend_config("x86"));
  for (const at::Tensor& part : samples.split(2)) prepared.calibrate({part});
  const ConvertResult converted = convert(prepared);
  const LowerResult lowered = lower(*converted.module, {.require_all = true});
  EXPECT_EQ(lowered.report.operators.at("halftone::int8_conv"), 6U);
  EXPECT_EQ(lowered.report.operators.at("halftone::int8_static_linear"), 1U);
  EXPECT_FALSE(lowered.report.operators.contains("halftone::int8_add")) << "sums belong to convolutions";

  const auto compiled = compile(lowered.module);
  const at::Tensor x = at::randn({5, 3, 24, 24});
  EXPECT_THAT(compiled->report({x}).left_to_aten, testing::IsEmpty());
  const at::Tensor y = compiled->run({x})[0].toTensor();
  EXPECT_TRUE(y.equal(Session(lowered.module).run({x})[0].toTensor())) << "native steps and operators";

  // Each product may round one step differently, and the next layers carry that on; the step of the last
  // layer is the measure.
  const at::Tensor reference = Session(converted.module).run({x})[0].toTensor();
  const Node* last = converted.module->graph().output_value(0).value()->producer();
  ASSERT_TRUE(last->is("halftone::dequantize_per_tensor"));
  const double step = *last->try_input("scale")->get_if<double>();
  const at::Tensor off = (y - reference).abs() / step;
  EXPECT_LE(off.max().item<double>(), 2.01);
  EXPECT_GE(off.lt(0.01).sum().item<int64_t>(), off.numel() * 8 / 10);
  const at::Tensor floats = Session(module).run({x})[0].toTensor();
  EXPECT_GT(at::cosine_similarity(y, floats, 1).min().item<double>(), 0.99);
}

INSTANTIATE_TEST_SUITE_P(Widths, StaticInt8Flow,
                         testing::Values(StaticInt8Bits{7, 7}, StaticInt8Bits{7, 8}, StaticInt8Bits{8, 8}),
                         [](const auto& info) {
                           return fmt::format("{}x{}", info.param.activation, info.param.weight);
                         });

}  // namespace
}  // namespace halftone
