// Models with convolutions, compiled against interpreted: what networks are made of.
#include "compiler/executor/conv_test_support.h"

namespace halftone {
namespace {

TEST(ConvModels, ResidualNetworkIsNativeFromEndToEnd) {
  at::manual_seed(21);
  NetWriter net("%x: user \"x\" f32[s0, 3, 32, 32]");
  const std::string t16 = "f32[s0, 16, 16, 16]", t8 = "f32[s0, 16, 8, 8]", t32 = "f32[s0, 32, 4, 4]";
  std::string y =
      net.add(t16, fmt::format("aten::conv2d(%x, {}, None, [2, 2], [3, 3])", net.weight({16, 3, 7, 7})));
  y = net.add(t16, fmt::format("aten::relu({})", net.batch_norm(t16, y, 16)));
  y = net.add(t8, fmt::format("aten::max_pool2d({}, [3, 3], [2, 2], [1, 1])", y));
  std::string z =
      net.add(t8, fmt::format("aten::conv2d({}, {}, None, [1, 1], [1, 1])", y, net.weight({16, 16, 3, 3})));
  z = net.add(t8, fmt::format("aten::relu({})", net.batch_norm(t8, z, 16)));
  z = net.add(t8, fmt::format("aten::conv2d({}, {}, None, [1, 1], [1, 1])", z, net.weight({16, 16, 3, 3})));
  y = net.add(t8, fmt::format("aten::add.Tensor({}, {})", net.batch_norm(t8, z, 16), y));
  y = net.add(t8, fmt::format("aten::relu({})", y));
  z = net.add(t32, fmt::format("aten::conv2d({}, {}, None, [2, 2], [1, 1])", y, net.weight({32, 16, 3, 3})));
  const std::string s =
      net.add(t32, fmt::format("aten::conv2d({}, {}, None, [2, 2])", y, net.weight({32, 16, 1, 1})));
  y = net.add(
      t32, fmt::format("aten::add.Tensor({}, {})", net.batch_norm(t32, z, 32), net.batch_norm(t32, s, 32)));
  y = net.add(t32, fmt::format("aten::relu({})", y));
  y = net.add("f32[s0, 32, 1, 1]", fmt::format("aten::adaptive_avg_pool2d({}, [1, 1])", y));
  y = net.add("f32[s0, 32]", fmt::format("aten::flatten.using_ints({}, 1)", y));
  y = net.add("f32[s0, 10]", fmt::format("aten::linear({}, {})", y, net.weight({10, 32})));
  const PlanReport report = expect_compiled(net.make(y), images({0, 3, 32, 32}, {1, 3, 0, 2}));
  EXPECT_THAT(report.left_to_aten, testing::IsEmpty());
  EXPECT_EQ(report.steps.size(), 8) << "five convolutions, two poolings, a linear, and nothing else";
  EXPECT_EQ(steps_of(report, "fp32_conv"), 5);
}

TEST(ConvModels, UnetWithTransposedConvolutionsAndCat) {
  at::manual_seed(22);
  NetWriter net("%x: user \"x\" f32[s0, 3, 16, 16]");
  const std::string t16 = "f32[s0, 8, 16, 16]", t8 = "f32[s0, 16, 8, 8]";
  const auto conv = [&](const std::string& type, const std::string& x, int64_t in, int64_t out) {
    const std::string y = net.add(
        type, fmt::format("aten::conv2d({}, {}, None, [1, 1], [1, 1])", x, net.weight({out, in, 3, 3})));
    return net.add(type, fmt::format("aten::relu({})", net.batch_norm(type, y, out)));
  };
  const std::string down = conv(t16, "%x", 3, 8);
  std::string y = net.add("f32[s0, 8, 8, 8]", fmt::format("aten::max_pool2d({}, [2, 2])", down));
  y = conv(t8, y, 8, 16);
  y = net.add(t16, fmt::format("aten::conv_transpose2d.input({}, {}, {}, [2, 2])", y,
                               net.weight({16, 8, 2, 2}), net.weight({8})));
  y = net.add("f32[s0, 16, 16, 16]", fmt::format("aten::cat([{}, {}], 1)", y, down));
  y = conv(t16, y, 16, 8);
  y = net.add("f32[s0, 2, 16, 16]",
              fmt::format("aten::conv2d({}, {}, {})", y, net.weight({2, 8, 1, 1}), net.weight({2})));
  const PlanReport report = expect_compiled(net.make(y), images({0, 3, 16, 16}, {2, 1}));
  EXPECT_THAT(report.left_to_aten, testing::IsEmpty());
  EXPECT_EQ(steps_of(report, "fp32_conv"), 5);
  EXPECT_EQ(steps_of(report, "copy"), 1) << "the result";
}

// Dense blocks join all that came before, again and again; a part may stand twice in a cat, and in two cats.
TEST(ConvModels, PartsOfCatsAreWrittenInPlace) {
  at::manual_seed(29);
  NetWriter net("%x: user \"x\" f32[s0, 4, 9, 9]");
  const auto type = [](int64_t channels) { return fmt::format("f32[s0, {}, 9, 9]", channels); };
  const auto conv = [&](const std::string& x, int64_t in, int64_t out) {
    return net.add(type(out),
                   fmt::format("aten::conv2d({}, {}, None, [1, 1], [1, 1])", x, net.weight({out, in, 3, 3})));
  };
  const std::string a = conv("%x", 4, 6), b = conv(a, 6, 5);
  const std::string ab = net.add(type(11), fmt::format("aten::cat([{}, {}], 1)", a, b));
  const std::string c = conv(ab, 11, 7);
  const std::string abc = net.add(type(29), fmt::format("aten::cat([{}, {}, {}, {}], 1)", a, b, c, ab));
  const std::string d = conv(abc, 29, 8);
  const std::string dd = net.add(type(20), fmt::format("aten::cat([{}, %x, {}], -3)", d, d));
  const std::string p = net.add("f32[s0, 20, 4, 4]", fmt::format("aten::max_pool2d({}, [2, 2])", dd));
  const PlanReport report =
      expect_compiled(net.make(fmt::format("{}, {}", p, dd)), images({0, 4, 9, 9}, {1, 3}));
  EXPECT_THAT(report.left_to_aten, testing::IsEmpty());
  EXPECT_EQ(steps_of(report, "nothing"), 1) << "the first cat has nothing left to do";
}

TEST(ConvModels, MobileNetWithGates) {
  at::manual_seed(23);
  NetWriter net("%x: user \"x\" f32[s0, 8, 12, 12]");
  const std::string t = "f32[s0, 24, 12, 12]", g = "f32[s0, 24, 1, 1]";
  std::string y = net.add(t, fmt::format("aten::conv2d(%x, {})", net.weight({24, 8, 1, 1})));
  y = net.add(t, fmt::format("aten::hardtanh({}, 0.0, 6.0)", net.batch_norm(t, y, 24)));
  y = net.add(
      t, fmt::format("aten::conv2d({}, {}, None, [1, 1], [1, 1], [1, 1], 24)", y, net.weight({24, 1, 3, 3})));
  y = net.add(t, fmt::format("aten::hardswish({})", net.batch_norm(t, y, 24)));
  std::string s = net.add(g, fmt::format("aten::mean.dim({}, [2, 3], true)", y));
  s = net.add("f32[s0, 6, 1, 1]", fmt::format("aten::conv2d({}, {})", s, net.weight({6, 24, 1, 1})));
  s = net.add("f32[s0, 6, 1, 1]", fmt::format("aten::silu({})", s));
  s = net.add(g, fmt::format("aten::conv2d({}, {})", s, net.weight({24, 6, 1, 1})));
  s = net.add(g, fmt::format("aten::hardsigmoid({})", s));
  y = net.add(t, fmt::format("aten::mul.Tensor({}, {})", y, s));
  y = net.add("f32[s0, 8, 12, 12]", fmt::format("aten::conv2d({}, {})", y, net.weight({8, 24, 1, 1})));
  y = net.add("f32[s0, 8, 12, 12]", fmt::format("aten::add.Tensor({}, %x)", y));
  const PlanReport report = expect_compiled(net.make(y), images({0, 8, 12, 12}, {1, 3}));
  EXPECT_THAT(report.left_to_aten, testing::IsEmpty());
  EXPECT_EQ(steps_of(report, "fp32_conv"), 5);
}

TEST(ConvModels, OneAndThreeDimensions) {
  at::manual_seed(24);
  NetWriter line("%x: user \"x\" f32[s0, 5, 40]");
  std::string y = line.add("f32[s0, 12, 40]", fmt::format("aten::conv1d(%x, {}, {}, [1], [2], [2])",
                                                          line.weight({12, 5, 3}), line.weight({12})));
  y = line.add("f32[s0, 12, 40]", fmt::format("aten::gelu({})", y));
  y = line.add("f32[s0, 12, 20]",
               fmt::format("aten::conv1d({}, {}, None, [2], [1], [1], 3)", y, line.weight({12, 4, 4})));
  y = line.add("f32[s0, 12, 10]", fmt::format("aten::max_pool1d({}, [2])", y));
  y = line.add("f32[s0, 12, 9]", fmt::format("aten::avg_pool1d({}, [2], [1])", y));
  y = line.add("f32[s0, 12, 9]", fmt::format("aten::conv1d({}, {})", y, line.weight({12, 12, 1})));
  y = line.add("f32[s0, 12]", fmt::format("aten::amax({}, [2])", y));
  const PlanReport lines = expect_compiled(line.make(y), images({0, 5, 40}, {1, 4}));
  EXPECT_THAT(lines.left_to_aten, testing::IsEmpty());
  EXPECT_EQ(lines.steps.size(), 7) << "the input turned around, three convolutions, three poolings";

  NetWriter cube("%x: user \"x\" f32[s0, 3, 6, 8, 7]");
  const std::string t = "f32[s0, 8, 6, 8, 7]";
  y = cube.add(t,
               fmt::format("aten::conv3d(%x, {}, None, [1, 1, 1], [1, 1, 1])", cube.weight({8, 3, 3, 3, 3})));
  y = cube.add(t, fmt::format("aten::relu({})", cube.batch_norm(t, y, 8)));
  y = cube.add("f32[s0, 8, 3, 4, 3]", fmt::format("aten::max_pool3d({}, [2, 2, 2])", y));
  y = cube.add("f32[s0, 4, 6, 8, 6]", fmt::format("aten::conv_transpose3d.input({}, {}, None, [2, 2, 2])", y,
                                                  cube.weight({8, 4, 2, 2, 2})));
  const PlanReport cubes = expect_compiled(cube.make(y), images({0, 3, 6, 8, 7}, {2}));
  EXPECT_THAT(cubes.left_to_aten, testing::IsEmpty());
}

TEST(ConvModels, EveryPoolingOperator) {
  at::manual_seed(25);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"f32[s0, 8, 6, 5]", "aten::max_pool2d({}, [3, 3], [2, 2], [1, 1])"},
      {"f32[s0, 8, 4, 3]", "aten::max_pool2d({}, [3, 2], [2, 3], [0, 1], [2, 2])"},
      {"f32[s0, 8, 6, 5]", "aten::max_pool2d({}, [2, 2], [2, 2], [0, 0], [1, 1], true)"},
      {"f32[s0, 8, 6, 5]", "aten::avg_pool2d({}, [3, 3], [2, 2], [1, 1])"},
      {"f32[s0, 8, 6, 5]", "aten::avg_pool2d({}, [3, 3], [2, 2], [1, 1], false, false)"},
      {"f32[s0, 8, 6, 5]", "aten::avg_pool2d({}, [2, 2], [2, 2], [0, 0], true, true)"},
      {"f32[s0, 8, 5, 4]", "aten::avg_pool2d({}, [2, 2], [], [0, 0], false, true, 3)"},
      {"f32[s0, 8, 3, 4]", "aten::adaptive_avg_pool2d({}, [3, 4])"},
      {"f32[s0, 8, 3, 4]", "aten::_adaptive_avg_pool2d({}, [3, 4])"},
      {"f32[s0, 8, 1, 1]", "aten::mean.dim({}, [-1, -2], true)"},
      {"f32[s0, 8]", "aten::amax({}, [2, 3])"}};
  for (const auto& [type, call] : cases) {
    NetWriter net("%x: user \"x\" f32[s0, 4, 11, 9]");
    std::string y = net.add("f32[s0, 8, 11, 9]", fmt::format("aten::conv2d(%x, {}, None, [1, 1], [1, 1])",
                                                             net.weight({8, 4, 3, 3})));
    y = net.add(type, fmt::format(fmt::runtime(call), y));
    const PlanReport report = expect_compiled(net.make(y), images({0, 4, 11, 9}, {1, 3}));
    EXPECT_THAT(report.left_to_aten, testing::IsEmpty()) << call;
  }
}

TEST(ConvModels, MkldnnWhereItIsAskedFor) {
  at::manual_seed(28);
  NetWriter net("%x: user \"x\" f32[s0, 8, 12, 12]");
  const std::string t = "f32[s0, 8, 12, 12]";
  const auto conv = [&](const std::string& x, const char* activation) {
    const std::string y = net.add(t, fmt::format("aten::conv2d({}, {}, {}, [1, 1], [1, 1])", x,
                                                 net.weight({8, 8, 3, 3}), net.weight({8})));
    return net.add(t, fmt::format(fmt::runtime(activation), y));
  };
  std::string y = conv("%x", "aten::relu({})");
  std::string z = conv(y, "aten::silu({})");
  z = net.add(t, fmt::format("aten::conv2d({}, {}, None, [1, 1], [1, 1])", z, net.weight({8, 8, 3, 3})));
  y = net.add(t, fmt::format("aten::relu({})", net.add(t, fmt::format("aten::add.Tensor({}, {})", z, y))));
  y = conv(y, "aten::hardtanh({}, 0.0, 6.0)");
  y = conv(y, "aten::gelu({})");
  y = net.add("f32[s0, 4, 24, 24]",
              fmt::format("aten::conv_transpose2d.input({}, {}, None, [2, 2])", y, net.weight({8, 4, 2, 2})));
  const auto module = net.make(y);
  const std::vector<c10::IValue> inputs = {at::randn({2, 8, 12, 12})};
  const auto expected = Session(module).run(inputs);
  const auto mkldnn = compile(module, {.convolutions = ConvChoice::kMkldnn});
  expect_close(mkldnn->run(inputs), expected, "mkldnn");
  const PlanReport report = mkldnn->report(inputs);
  EXPECT_EQ(steps_of(report, "mkldnn"), 5);
  EXPECT_EQ(steps_of(report, "fp32_conv"), 1) << "a transposed one, which it does not have";
  EXPECT_EQ(report.choices.size(), 6u);
  EXPECT_THAT(report.choices, testing::Contains(testing::HasSubstr("not transposed")));
  EXPECT_EQ(report.left_to_aten.size(), 5u);
  const auto fastest = compile(module, {.convolutions = ConvChoice::kFastest});
  expect_close(fastest->run(inputs), expected, "the fastest");
  EXPECT_THAT(fastest->report(inputs).choices, testing::Contains(testing::HasSubstr(" ms, mkldnn ")));
}

// What ATen computes keeps the layout too: no copies but the result's.
TEST(ConvModels, InterpolationAndNormsOfAtenKeepTheLayout) {
  at::manual_seed(30);
  NetWriter net("%x: user \"x\" f32[s0, 3, 8, 8]");
  const std::string small = "f32[s0, 8, 8, 8]", large = "f32[s0, 8, 16, 16]";
  const std::string c =
      net.add(small, fmt::format("aten::conv2d(%x, {}, None, [1, 1], [1, 1])", net.weight({8, 3, 3, 3})));
  std::string y = net.add(small, fmt::format("aten::silu({})", c));
  y = net.batch_norm(small, y, 8);
  y = net.add(small, fmt::format("aten::group_norm({}, 2, {}, {})", y, net.positive({8}), net.weight({8})));
  const std::string a =
      net.add(large, fmt::format("aten::upsample_bilinear2d.vec({}, [16, 16], false, None)", y));
  const std::string b = net.add(large, fmt::format("aten::upsample_nearest2d.vec({}, [16, 16], None)", y));
  y = net.add("f32[s0, 16, 16, 16]", fmt::format("aten::cat([{}, {}], 1)", a, b));
  y = net.add(large, fmt::format("aten::conv2d({}, {}, None, [1, 1], [1, 1])", y, net.weight({8, 16, 3, 3})));
  const PlanReport report = expect_compiled(net.make(y), images({0, 3, 8, 8}, {1, 2}));
  EXPECT_EQ(report.left_to_aten.size(), 4u);
  EXPECT_EQ(steps_of(report, "copy"), 2) << "cat, and the result";
}

TEST(ConvModels, WeightsThatAreInputsStayWithAten) {
  at::manual_seed(26);
  const auto module = module_from_text(
      R"(graph(%x: user "x" f32[2, 4, 8, 8], %w: user "w" f32[6, 4, 3, 3]) {
    %c: f32[2, 6, 6, 6] = aten::conv2d(%x, %w)
    %y: f32[2, 6, 6, 6] = aten::relu(%c)
    return %y
  })",
      {});
  const auto compiled = compile(module);
  const std::vector<c10::IValue> inputs = {at::randn({2, 4, 8, 8}), at::randn({6, 4, 3, 3})};
  expect_close(compiled->run(inputs), Session(module).run(inputs), "weights as inputs");
  EXPECT_EQ(compiled->report(inputs).left_to_aten.size(), 1u);
}

TEST(ConvModels, InputsOfAnyStrides) {
  at::manual_seed(27);
  NetWriter net("%x: user \"x\" f32[s0, 8, 9, 9]");
  std::string y = net.add("f32[s0, 8, 9, 9]", fmt::format("aten::conv2d(%x, {}, None, [1, 1], [1, 1])",
                                                          net.weight({8, 8, 3, 3})));
  y = net.add("f32[s0, 8, 9, 9]", fmt::format("aten::add.Tensor({}, %x)", y));
  const at::Tensor x = at::randn({2, 8, 9, 9});
  const auto module = net.make(y);
  const auto compiled = compile(module);
  for (const at::Tensor& given :
       {x, x.contiguous(at::MemoryFormat::ChannelsLast), at::randn({2, 16, 9, 9}).slice(1, 0, 16, 2),
        at::randn({2, 16, 9, 9}).contiguous(at::MemoryFormat::ChannelsLast).slice(1, 4, 12),
        at::randn({1, 8, 9, 9}).expand({2, 8, 9, 9})}) {
    const at::Tensor found = compiled->run({given})[0].toTensor(),
                     expected = Session(module).run({given.contiguous()})[0].toTensor();
    EXPECT_LE((found - expected).abs().max().item<double>(), 1e-4);
  }
}

}  // namespace
}  // namespace halftone
