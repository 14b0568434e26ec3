// optimize_ctx(): quantizes once, whichever thread calls, and gives the result of quantize_.
#include "halftone/compat/optimize_ctx.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cosine_similarity.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <atomic>
#include <thread>

#include "compat/test_models.h"
#include "halftone/quant/quantized_tensor.h"

namespace halftone {
namespace {

using testing::HasSubstr;

class TwoInputs : public torch::nn::Module {
 public:
  TwoInputs() {
    at::manual_seed(6);
    up = register_module("up", torch::nn::Linear(64, 96));
    down = register_module("down", torch::nn::Linear(96, 64));
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& scale) {
    return down->forward(at::gelu(up->forward(x))) * scale;
  }
  torch::nn::Linear up{nullptr}, down{nullptr};
};

/// Without anything to quantize.
class NoLayers : public torch::nn::Module {};

ModelSource source_of(const std::shared_ptr<TwoInputs>& net) {
  return {net, [weak = std::weak_ptr(net)](const std::vector<c10::IValue>& args) -> c10::IValue {
            return weak.lock()->forward(args.at(0).toTensor(), args.at(1).toTensor());
          }};
}

ModelSource new_source() {
  return source_of(std::make_shared<TwoInputs>());
}

std::vector<c10::IValue> two_inputs() {
  at::manual_seed(7);
  return {at::randn({3, 64}), at::randn({3, 1})};
}

ModelIterFn plain_iteration() {
  return [](const ModelSource& model, const ExampleInputs& inputs) {
    const at::NoGradGuard no_grad;
    return call_model(model, inputs, {"x", "scale"});
  };
}

const at::Tensor& up_weight(const ModelSource& model) {
  return dynamic_cast<TwoInputs&>(*model.module).up->weight;
}

TEST(OptimizeCtx, GivesWhatQuantizeGives) {
  const at::NoGradGuard no_grad;
  for (const char* name : {"int8dynamic", "int8weightonly", "int4weightonly"}) {
    SCOPED_TRACE(name);
    const ModelSource model = new_source(), other = new_source();
    EXPECT_EQ(quantization_mark(model), std::nullopt);
    const ModelIterFn run = optimize_ctx(name)(plain_iteration());
    const at::Tensor result = run(model, two_inputs()).toTensor();
    quantize_(*other.module, name);
    EXPECT_TRUE(at::equal(result, other.forward(two_inputs()).toTensor()));
    EXPECT_TRUE(at::equal(run(model, two_inputs()).toTensor(), result));
    EXPECT_EQ(quantized_weight_of(up_weight(model)).config, QuantConfig(name));
    EXPECT_EQ(quantization_mark(model), name);
  }
}

TEST(OptimizeCtx, LeavesAloneWhatTheFilterLeavesOut) {
  const at::NoGradGuard no_grad;
  const ModelSource model = new_source();
  QuantizeReport report;
  OptimizeCtxOptions options;
  options.filter = [](const LayerInfo& layer) { return layer.name != "down"; };
  options.on_quantized = [&](const QuantizeReport& done) { report = done; };
  optimize_ctx("int4weightonly", options)(plain_iteration())(model, two_inputs());
  ASSERT_EQ(report.layers.size(), 2u);
  EXPECT_EQ(report.layers[0].outcome, LayerReport::Outcome::kQuantized);
  EXPECT_EQ(report.layers[1].layer.name, "down");
  EXPECT_EQ(report.layers[1].outcome, LayerReport::Outcome::kKept);
}

TEST(OptimizeCtx, TakesGraphsToo) {
  const auto graph = block_model(), other = block_model();
  const auto inputs = block_inputs();
  const c10::IValue result = optimize_ctx("int8dynamic")(plain_iteration())(graph, inputs);
  quantize_(*other, "int8dynamic");
  const c10::IValue expected = Session(other)(inputs);
  EXPECT_TRUE(at::equal(result.toTupleRef().elements()[0].toTensor(),
                        expected.toTupleRef().elements()[0].toTensor()));
  const std::map<std::string, c10::IValue> dict = {{"r", inputs[1]}, {"x", inputs[0]}};
  const c10::IValue by_name = call_model(graph, dict);
  EXPECT_TRUE(at::equal(by_name.toTupleRef().elements()[0].toTensor(),
                        expected.toTupleRef().elements()[0].toTensor()));
  expect_error(ErrorCode::kInvalidArgument, {"no argument \"z\"", "arguments: x, r"}, [&] {
    call_model(graph, std::map<std::string, c10::IValue>{{"z", inputs[0]}});
  });
}

TEST(OptimizeCtx, NoquantLeavesTheModelAloneAndMarksIt) {
  const at::NoGradGuard no_grad;
  const ModelSource model = new_source();
  const at::Tensor expected = model.forward(two_inputs()).toTensor();
  EXPECT_TRUE(
      at::equal(optimize_ctx("noquant")(plain_iteration())(model, two_inputs()).toTensor(), expected));
  EXPECT_FALSE(is_quantized_tensor(up_weight(model)));
  optimize_ctx("int8dynamic")(plain_iteration())(model, two_inputs());
  EXPECT_FALSE(is_quantized_tensor(up_weight(model))) << "marked before";
  EXPECT_EQ(quantization_mark(model), "noquant");
}

TEST(OptimizeCtx, FourBitsTakeALayerOfAnyWidth) {
  const at::NoGradGuard no_grad;
  auto module =
      std::make_shared<torch::nn::SequentialImpl>(torch::nn::Linear(100, 33), torch::nn::Linear(33, 8));
  const ModelSource model(module, [module](const std::vector<c10::IValue>& args) -> c10::IValue {
    return module->forward(args.at(0).toTensor());
  });
  const at::Tensor x = at::randn({3, 100}), before = module->forward(x);
  const at::Tensor after =
      optimize_ctx("int4weightonly")(plain_iteration())(model, std::vector<c10::IValue>{x}).toTensor();
  EXPECT_GT(at::cosine_similarity(before.flatten(), after.flatten(), 0).item<double>(), 0.98);
  EXPECT_FALSE(at::equal(before, after));
}

TEST(OptimizeCtx, TheMarkIsTheSameForEveryContext) {
  const ModelSource model = new_source();
  int quantized = 0;
  OptimizeCtxOptions options;
  options.on_quantized = [&](const QuantizeReport& report) {
    ++quantized;
    EXPECT_EQ(report.count(LayerReport::Outcome::kQuantized), 2u);
  };
  optimize_ctx("int8weightonly", options)(plain_iteration())(model, two_inputs());
  optimize_ctx("int4weightonly", options)(plain_iteration())(model, two_inputs());
  // Another handle on the same module.
  const ModelSource again = source_of(std::dynamic_pointer_cast<TwoInputs>(model.module));
  optimize_ctx("int8weightonly", options)(plain_iteration())(again, two_inputs());
  EXPECT_EQ(quantized, 1);
  EXPECT_EQ(quantized_weight_of(up_weight(model)).config, QuantConfig("int8weightonly"));
}

TEST(OptimizeCtx, UnknownNamesAreRefusedWhenTheContextIsMade) {
  expect_error(ErrorCode::kInvalidArgument, {"\"int8dynamics\"", "did you mean \"int8dynamic\"?", "noquant"},
               [] { optimize_ctx("int8dynamics"); });
  expect_error(ErrorCode::kInvalidArgument, {"unknown quantization \"int8wo\""},
               [] { optimize_ctx("int8wo"); });
  expect_error(ErrorCode::kInvalidArgument, {"no function"}, [] { optimize_ctx("noquant")(nullptr); });
  expect_error(ErrorCode::kInvalidArgument, {"no model"}, [] {
    optimize_ctx("noquant")(plain_iteration())(std::shared_ptr<GraphModule>(), two_inputs());
  });
}

TEST(OptimizeCtx, AnErrorLeavesNoMark) {
  const auto empty = std::make_shared<NoLayers>();
  const ModelSource model(empty, [](const std::vector<c10::IValue>& args) { return args.at(0); });
  int runs = 0;
  const auto counted = [&](const ModelSource& source, const ExampleInputs& inputs) {
    ++runs;
    return call_model(source, inputs);
  };
  for (int i = 0; i < 2; ++i)
    EXPECT_THROW(optimize_ctx("int8dynamic")(counted)(model, two_inputs()), Error) << "nothing to quantize";
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(quantization_mark(model), std::nullopt);
  optimize_ctx("noquant")(counted)(model, two_inputs());
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(quantization_mark(model), "noquant");
}

TEST(OptimizeCtx, AnErrorOfTheIterationItselfKeepsTheMark) {
  const ModelSource model = new_source();
  const auto failing = [](const ModelSource&, const ExampleInputs&) -> c10::IValue {
    throw Error(ErrorCode::kState, "of the benchmark");
  };
  expect_error(ErrorCode::kState, {"of the benchmark"},
               [&] { optimize_ctx("int8dynamic")(failing)(model, two_inputs()); });
  EXPECT_EQ(quantization_mark(model), "int8dynamic") << "the model is quantized";
}

TEST(OptimizeCtx, TheMarkGoesWithTheModel) {
  alignas(TwoInputs) std::byte memory[sizeof(TwoInputs)];
  const auto place = [&] {  // always at the same address
    return std::shared_ptr<TwoInputs>(new (memory) TwoInputs(), [](TwoInputs* net) { net->~TwoInputs(); });
  };
  int quantized = 0;
  OptimizeCtxOptions options;
  options.on_quantized = [&](const QuantizeReport&) { ++quantized; };
  const ModelIterFn run = optimize_ctx("int8dynamic", options)(plain_iteration());
  for (int generation = 1; generation <= 3; ++generation) {
    auto net = place();
    const std::weak_ptr<TwoInputs> watch = net;
    EXPECT_EQ(quantization_mark(source_of(net)), std::nullopt);
    run(source_of(net), two_inputs());
    run(source_of(net), two_inputs());
    EXPECT_EQ(quantized, generation);
    net.reset();
    EXPECT_TRUE(watch.expired()) << "the mark does not keep it alive";
  }
}

TEST(OptimizeCtx, ThreadsThatComeTogetherQuantizeOnce) {
  for (int round = 0; round < 10; ++round) {
    const ModelSource model = new_source();
    std::atomic<int> quantized = 0;
    OptimizeCtxOptions options;
    options.on_quantized = [&](const QuantizeReport&) { ++quantized; };
    std::vector<at::Tensor> results(6);
    std::vector<std::thread> threads;
    std::atomic<int> waiting = 6;
    const auto inputs = two_inputs();
    for (at::Tensor& result : results) {
      threads.emplace_back([&] {
        const ModelIterFn run = optimize_ctx("int8weightonly", options)(plain_iteration());
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        result = run(model, inputs).toTensor();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(quantized, 1);
    for (const at::Tensor& result : results) EXPECT_TRUE(at::equal(result, results[0]));
  }
}

TEST(OptimizeCtx, DictsReachAModuleByTheNamesOfItsArguments) {
  const at::NoGradGuard no_grad;
  const auto inputs = two_inputs();
  const ModelSource model = new_source();
  const ModelIterFn run = optimize_ctx("int8dynamic", {.argument_names = {"x", "scale"}})(plain_iteration());
  const std::map<std::string, c10::IValue> dict = {{"scale", inputs[1]}, {"x", inputs[0]}};
  EXPECT_TRUE(at::equal(run(model, dict).toTensor(), run(model, inputs).toTensor()));
  using Dict = std::map<std::string, c10::IValue>;
  expect_error(ErrorCode::kInvalidArgument, {"no argument \"scales\"", "did you mean \"scale\"?"}, [&] {
    run(model, Dict{{"x", inputs[0]}, {"scales", inputs[1]}});
  });
  expect_error(ErrorCode::kInvalidArgument, {"\"x\" is missing"}, [&] {
    run(model, Dict{{"scale", inputs[1]}});
  });
  expect_error(ErrorCode::kInvalidArgument, {"argument_names"}, [&] { call_model(model, dict); });
}

AutoquantOptions brief_autoquant() {
  AutoquantOptions options;
  options.schemes = {"int8dq"};
  options.time_limit = 5;
  options.final_comparison = false;
  options.min_cosine = 0.9;
  options.min_layer_cosine = 0.9;
  return options;
}

TEST(OptimizeCtx, AutoquantPlansWithTheInputsOfTheCall) {
  for (const bool by_name : {false, true}) {
    const ModelSource model = new_source();
    const auto inputs = two_inputs();
    std::vector<AutoquantPlan> plans;
    const OptimizeCtxOptions options{
        .argument_names = {"x", "scale"},
        .autoquant = brief_autoquant(),
        .on_autoquantized = [&](const AutoquantPlan& plan) { plans.push_back(plan); }};
    const ModelIterFn run = optimize_ctx("autoquant", options)(plain_iteration());
    const ExampleInputs given =
        by_name ? ExampleInputs(std::map<std::string, c10::IValue>{{"x", inputs[0]}, {"scale", inputs[1]}})
                : ExampleInputs(inputs);
    const at::Tensor result = run(model, given).toTensor();
    ASSERT_EQ(plans.size(), 1u);
    EXPECT_EQ(plans[0].layers.size(), 2u);
    EXPECT_EQ(quantization_mark(model), "autoquant");
    const ModelSource plain = new_source();
    const at::NoGradGuard no_grad;
    const at::Tensor expected = plain.forward(inputs).toTensor();
    EXPECT_TRUE(at::allclose(result, expected, 0.1, 0.1 * expected.abs().max().item<double>()));
    run(model, given);
    EXPECT_EQ(plans.size(), 1u);
  }
}

TEST(OptimizeCtx, ModelsWithoutLayersAreNotAutoquantizable) {
  const ModelSource model(std::make_shared<NoLayers>(),
                          [](const std::vector<c10::IValue>& args) { return args.at(0); });
  expect_error(ErrorCode::kInvalidArgument, {"NotAutoquantizable", "NoLayers"}, [&] {
    optimize_ctx("autoquant", {.autoquant = brief_autoquant()})(plain_iteration())(model, two_inputs());
  });
  EXPECT_EQ(quantization_mark(model), std::nullopt);
}

}  // namespace
}  // namespace halftone
