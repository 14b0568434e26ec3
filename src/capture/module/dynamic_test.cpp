// Dynamic sizes: one graph, captured at one size, gives what the module gives at others.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/transformercoder.h>
#include <torch/nn/modules/transformerlayer.h>

#include "capture/module/size_solver.h"
#include "capture/module/test_support.h"

namespace halftone {
namespace {

using torch::indexing::Slice;

template <typename Model, typename... Inputs>
void expect_same_as(Model& model, Session& session, const std::tuple<Inputs...>& inputs,
                    double tolerance = 0) {
  const at::NoGradGuard no_grad;
  const c10::IValue expected = std::apply(
      [&](const auto&... input) { return capture_detail::to_ivalue(model.forward(input...)); }, inputs);
  const std::vector<c10::IValue> args = std::apply(
      [](const auto&... input) { return std::vector{capture_detail::to_ivalue(input)...}; }, inputs);
  expect_same(session(args), expected, tolerance, fmt::format("{}", std::get<0>(inputs).sizes()));
}

CaptureOptions with(std::vector<DynamicDim> dims) {
  CaptureOptions options;
  options.dynamic = std::move(dims);
  return options;
}

TEST(SizeSolver, FindsWhatSizesAreMadeOf) {
  const std::vector<SymbolBindings> traces = {
      {{"a", 5}, {"b", 8}}, {{"a", 7}, {"b", 9}}, {{"a", 11}, {"b", 13}}};
  SizeSolver solver(traces);
  const auto text = [&](const Samples& values, const std::vector<SymExpr>& more = {}) {
    const auto found = solver.solve(values, more);
    return found ? found->to_string() : "nothing";
  };
  EXPECT_EQ(text({4, 4, 4}), "4");
  EXPECT_EQ(text({5, 7, 11}), "a");
  EXPECT_EQ(text({13, 17, 25}), "2*a + 3");
  EXPECT_EQ(text({120, 189, 429}), "3*(a*b)");
  EXPECT_EQ(text({13, 16, 24}), "a + b");
  EXPECT_EQ(text({4, 4, 6}), "nothing");
  EXPECT_EQ(text({1, 100, 3}), "nothing");
}

TEST(SizeSolver, FindsQuotientsFromManyTraces) {
  std::vector<SymbolBindings> traces;
  for (const int64_t n : {24, 25, 29, 31, 32, 33, 34, 35, 36, 37, 38, 39, 49, 97})
    traces.push_back({{"n", n}});
  SizeSolver solver(traces, /*quotients=*/true);
  const auto text = [&](const char* expression) {
    const auto found = solver.solve(solver.evaluate(SymExpr::parse(expression)));
    return found ? found->to_string() : "nothing";
  };
  EXPECT_EQ(text("n//2"), "n//2");
  EXPECT_EQ(text("(n + 1)//2"), "(n + 1)//2");
  EXPECT_EQ(text("(n - 7)//4"), "(n - 7)//4");
  EXPECT_EQ(text("(n - 3)//8 + 1"), "(n + 5)//8");
}

TEST(CaptureDynamic, BatchOfAPlainNetwork) {
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(6, 8), torch::nn::ReLU(), torch::nn::Linear(8, 3));
  const auto graph = capture(*model, std::tuple(seeded({4, 6})), with({{"input0", 0, "batch", 1, 64}}));
  EXPECT_EQ(graph->ranges.at("batch"), (SymbolRange{1, 64}));
  EXPECT_EQ(graph->graph().inputs()[0].value->meta()->sizes[0].to_string(), "batch");
  Session session(graph);
  for (const int64_t batch : {1, 2, 4, 31, 64})
    expect_same_as(*model, session, std::tuple(seeded({batch, 6})));
  expect_error(ErrorCode::kGuard, {"batch"}, [&] { session({seeded({65, 6})}); });
}

TEST(CaptureDynamic, ExampleOfSizeOneIsNoObstacle) {
  torch::nn::Sequential model(torch::nn::Linear(6, 8), torch::nn::ReLU());
  const auto graph =
      capture(*model, std::tuple(seeded({1, 3, 6})), with({{"input0", 0, "batch"}, {"input0", 1, "tokens"}}));
  Session session(graph);
  for (const int64_t batch : {1, 2, 9}) expect_same_as(*model, session, std::tuple(seeded({batch, 5, 6})));
}

TEST(CaptureDynamic, TransformerOverBatchAndTokens) {
  torch::manual_seed(2);
  torch::nn::TransformerEncoderLayer layer(
      torch::nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16));
  torch::nn::TransformerEncoder model(torch::nn::TransformerEncoderOptions(layer, 2));
  model->eval();
  const auto graph =
      capture(*model, std::tuple(seeded({5, 3, 8})), with({{"input0", 0, "tokens"}, {"input0", 1, "batch"}}));
  Session session(graph);
  for (const auto& [tokens, batch] : {std::pair{5, 3}, {1, 1}, {2, 8}, {17, 4}, {6, 6}})
    expect_same_as(*model, session, std::tuple(seeded({tokens, batch, 8})), 1e-5);
}

TEST(CaptureDynamic, CrossAttentionOfTwoLengths) {
  torch::manual_seed(3);
  torch::nn::MultiheadAttention model(torch::nn::MultiheadAttentionOptions(8, 2));
  model->eval();
  const auto inputs = [](int64_t target, int64_t source, int64_t batch) {
    const at::Tensor memory = seeded({source, batch, 8}, 2);
    return std::tuple(seeded({target, batch, 8}), memory, memory.clone());
  };
  const auto graph = capture(*model, inputs(4, 6, 2),
                             with({{"input0", 0, "target"},
                                   {"input0", 1, "batch"},
                                   {"input1", 0, "source"},
                                   {"input1", 1, "batch"},
                                   {"input2", 0, "source"},
                                   {"input2", 1, "batch"}}));
  Session session(graph);
  expect_same_as(*model, session, inputs(3, 11, 5), 1e-5);
  expect_same_as(*model, session, inputs(7, 2, 1), 1e-5);
}

TEST(CaptureDynamic, ConvolutionOverImageSizes) {
  torch::manual_seed(4);
  using namespace torch::nn;
  torch::nn::Sequential model(Conv2d(Conv2dOptions(3, 4, 3).stride(2).padding(1)), BatchNorm2d(4),
                              MaxPool2d(2), Conv2d(Conv2dOptions(4, 2, 3)));
  model->eval();
  const auto graph =
      capture(*model, std::tuple(seeded({2, 3, 24, 28})),
              with({{"input0", 0, "batch"}, {"input0", 2, "height", 16}, {"input0", 3, "width", 16}}));
  Session session(graph);
  for (const auto& [height, width] : {std::pair{24, 28}, {17, 16}, {19, 33}, {30, 22}})
    expect_same_as(*model, session, std::tuple(seeded({3, 3, height, width})), 1e-5);
}

TEST(CaptureDynamic, RecurrentNetworkMakesItsOwnState) {
  torch::manual_seed(5);
  torch::nn::LSTM model(torch::nn::LSTMOptions(4, 6).batch_first(true));
  const auto graph =
      capture(*model, std::tuple(seeded({3, 5, 4})), with({{"input0", 0, "batch"}, {"input0", 1, "steps"}}));
  Session session(graph);
  expect_same_as(*model, session, std::tuple(seeded({1, 9, 4})), 1e-6);
  expect_same_as(*model, session, std::tuple(seeded({8, 2, 4})), 1e-6);
}

/// Sizes as operands: slices, products, sums, halves, the last element, arange, and a number as a result.
struct SizesModel : torch::nn::Module {
  at::Tensor positions{register_buffer("positions", at::arange(64).to(at::kFloat))};
  std::tuple<at::Tensor, at::Tensor, int64_t> forward(const at::Tensor& x) {
    const int64_t tokens = x.size(1);
    at::Tensor y = x + positions.slice(0, 0, tokens).unsqueeze(1);
    y = at::cat({y, at::zeros({x.size(0), 2, x.size(2)})}, 1).reshape({x.size(0) * (tokens + 2), x.size(2)});
    y.slice(0, 0, tokens / 2).mul_(2);
    const at::Tensor last = x.select(1, tokens - 1) + at::arange(x.size(2));
    return {y, last, tokens * 2};
  }
};

TEST(CaptureDynamic, SizesInOperandsAndResults) {
  SizesModel model;
  const auto graph = capture(model, std::tuple(seeded({3, 8, 2})),
                             with({{"input0", 0, "batch"}, {"input0", 1, "tokens", 1, 64}}));
  Session session(graph);
  for (const auto& [batch, tokens] : {std::pair{3, 8}, {2, 7}, {5, 64}, {1, 3}}) {
    const at::Tensor x = seeded({batch, tokens, 2});
    expect_same_as(model, session, std::tuple(x));
    EXPECT_EQ(session({x}).toTupleRef().elements()[2].toInt(), tokens * 2);
  }
}

TEST(CaptureDynamic, FoundByOtherExamples) {
  torch::nn::Embedding model(11, 4);
  CaptureOptions options;
  options.more_examples = {{seeded_ids({3, 7}, 11)}};
  const auto graph = capture(*model, std::tuple(seeded_ids({2, 5}, 11)), options);
  EXPECT_THAT(graph->ranges, ::testing::SizeIs(2));
  Session session(graph);
  expect_same_as(*model, session, std::tuple(seeded_ids({6, 1}, 11)));
  options.more_examples = {{seeded_ids({2, 7}, 11)}, {seeded_ids({2, 9}, 11)}};
  EXPECT_THAT(capture(*model, std::tuple(seeded_ids({2, 5}, 11)), options)->ranges, ::testing::SizeIs(1));
}

TEST(CaptureDynamic, FoundByTrying) {
  torch::manual_seed(6);
  torch::nn::Sequential model(torch::nn::Linear(6, 8), torch::nn::ReLU());
  CaptureOptions options;
  options.find_dynamic = true;
  const auto graph = capture(*model, std::tuple(seeded({2, 5, 6})), options);
  EXPECT_THAT(graph->ranges, ::testing::SizeIs(2));  // not the features: the model has weights for them
  EXPECT_EQ(graph->graph().inputs()[0].value->meta()->sizes[2], SymExpr(6));
  Session session(graph);
  expect_same_as(*model, session, std::tuple(seeded({7, 3, 6})));
}

struct BranchingModel : torch::nn::Module {
  torch::nn::Linear wide{register_module("wide", torch::nn::Linear(4, 4))};
  at::Tensor forward(const at::Tensor& x) { return x.size(0) > 5 ? at::tanh(wide(x)) : at::sigmoid(wide(x)); }
};

TEST(CaptureDynamic, BranchesOnSizesAreNamed) {
  BranchingModel model;
  expect_error(ErrorCode::kUnsupported, {"batch=5", "aten::sigmoid", "aten::tanh", "node"}, [&] {
    capture(model, std::tuple(seeded({5, 4})), with({{"input0", 0, "batch"}}));
  });
}

struct LonelyModel : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return x.size(0) == 1 ? x.select(0, 0) * 3 : x.sum(0); }
};

TEST(CaptureDynamic, SpecialCasesOfSizeOneAreNamed) {
  LonelyModel model;
  const at::Tensor x = seeded({5, 4});
  expect_error(ErrorCode::kUnsupported, {"n = 1", "DynamicDim::min"}, [&] {
    capture(model, std::tuple(x), with({{"input0", 0, "n"}}));
  });
  Session session(capture(model, std::tuple(x), with({{"input0", 0, "n", 2}})));
  expect_same_as(model, session, std::tuple(seeded({2, 4})));
}

struct TableModel : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    std::vector<float> table(static_cast<size_t>(x.size(0)), 1.5F);
    return x + at::tensor(table);
  }
};

TEST(CaptureDynamic, TablesThatPlainCodeFillsAreNamed) {
  TableModel model;
  expect_error(ErrorCode::kUnsupported, {"aten::add.Tensor", "depends on the sizes"}, [&] {
    capture(model, std::tuple(seeded({5})), with({{"input0", 0, "n"}}));
  });
}

TEST(CaptureDynamic, WrongDeclarationsAreRefused) {
  torch::nn::Linear model(4, 4);
  const auto refuse = [&](DynamicDim dim, std::initializer_list<std::string> parts) {
    expect_error(ErrorCode::kInvalidArgument, parts, [&] {
      capture(*model, std::tuple(seeded({3, 4})), with({dim}));
    });
  };
  refuse({"input1", 0, "n"}, {"input1"});
  refuse({"input0", 2, "n"}, {"dimension 2"});
  refuse({"input0", 0, "n", 4}, {"out of its range"});
  refuse({"input0", 0, "n", 2, 3}, {"at least 3"});
  refuse({"input0", 1, "features"}, {"features = "});  // the model itself fails there
}

}  // namespace
}  // namespace halftone
