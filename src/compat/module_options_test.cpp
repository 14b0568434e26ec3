// The effect of the options on compile(module): how many graphs, and when a parameter may change.
#include <ATen/core/grad_mode.h>
#include <torch/nn/modules/linear.h>

#include "compat/test_models.h"
#include "halftone/compile/compilers.h"

namespace halftone {
namespace {

class SmallNet : public torch::nn::Module {
 public:
  SmallNet() {
    at::manual_seed(5);
    weight = register_parameter("weight", at::randn({8, 4}));
    inner = register_module("inner", torch::nn::Linear(8, 3));
  }
  at::Tensor forward(const at::Tensor& x) { return inner->forward(at::relu(at::matmul(x, weight.t()))); }
  at::Tensor weight;
  torch::nn::Linear inner{nullptr};
};

struct SmallCall {
  std::shared_ptr<SmallNet> net = std::make_shared<SmallNet>();
  CompiledModule compiled;
  at::NoGradGuard no_grad;

  explicit SmallCall(const BaselineOptions& options)
      : compiled(compile(
            net,
            [net = net](const std::vector<c10::IValue>& args) -> c10::IValue {
              return net->forward(args.at(0).toTensor());
            },
            baseline_module_options(options))) {}
  /// Calls with so many rows and compares with the module itself.
  void expect_right(int64_t rows) {
    const at::Tensor x = at::randn({rows, 4});
    const at::Tensor result = compiled({x}).toTensor();
    EXPECT_TRUE(at::allclose(result, net->forward(x), 1e-5, 1e-6)) << rows << " rows";
  }
  int64_t made() const { return compiled.counters().compilations; }
};

TEST(BaselineModule, ASecondSizeMakesOneGraphForAll) {
  BaselineOptions options;
  options.automatic_dynamic_shapes = true;
  SmallCall call(options);
  call.expect_right(3);
  call.expect_right(3);
  EXPECT_EQ(call.made(), 1);
  call.expect_right(5);
  EXPECT_EQ(call.made(), 2);
  for (const int64_t rows : {7, 3, 11, 5, 40}) call.expect_right(rows);
  EXPECT_EQ(call.made(), 2) << "one for all sizes";
}

TEST(BaselineModule, OtherwiseEachSizeHasAGraph) {
  SmallCall call({});
  for (const int64_t rows : {3, 5, 7, 5, 3}) call.expect_right(rows);
  EXPECT_EQ(call.made(), 3);
}

TEST(BaselineModule, TheRecompileLimitEndsIt) {
  BaselineOptions options;
  options.recompile_limit = 2;
  SmallCall call(options);
  for (const int64_t rows : {3, 5, 7, 9}) call.expect_right(rows);
  EXPECT_EQ(call.made(), 2);
  EXPECT_EQ(call.compiled.counters().eager_calls, 2);
}

/// A hidden width of 6 instead of 8.
void narrow(SmallNet& net) {
  net.weight.set_data(at::randn({6, 4}));
  net.inner->weight.set_data(at::randn({3, 6}));
}

TEST(BaselineModule, AParameterOfAnotherSizeIsAnError) {
  SmallCall call({});
  call.expect_right(3);
  narrow(*call.net);
  expect_error(ErrorCode::kState, {"\"weight\"", "[6, 4] now", "was [8, 4]"}, [&] { call.expect_right(3); });
  EXPECT_EQ(call.made(), 1);
  call.net->weight.set_data(at::randn({8, 4}));
  expect_error(ErrorCode::kState, {"\"inner.weight\""}, [&] { call.expect_right(3); });
  call.net->inner->weight.set_data(at::randn({3, 8}));
  call.expect_right(3);
  EXPECT_EQ(call.made(), 2) << "other tensors of the same sizes";
}

TEST(BaselineModule, OrItIsCompiledAgain) {
  SmallCall call(setup_baseline("001"));
  call.expect_right(3);
  narrow(*call.net);
  call.expect_right(3);
  EXPECT_EQ(call.made(), 2);
}

TEST(BaselineModule, AParameterThatShrinksInPlaceIsSeen) {
  BaselineOptions options;
  options.force_parameter_static_shapes = false;
  SmallCall call(options);
  call.net->weight.set_requires_grad(false);
  call.net->inner->weight.set_requires_grad(false);
  call.expect_right(3);
  const void* memory = call.net->weight.const_data_ptr();
  call.net->weight.resize_({6, 4});
  call.net->inner->weight.resize_({3, 6});
  ASSERT_EQ(call.net->weight.const_data_ptr(), memory);
  call.expect_right(3);
  EXPECT_EQ(call.made(), 2);
}

TEST(BaselineModule, EveryPresetGivesTheModulesNumbers) {
  for (const std::string& preset : baseline_presets()) {
    SmallCall call(setup_baseline(preset));
    for (const int64_t rows : {1, 3}) call.expect_right(rows);
  }
}

TEST(BaselineModule, OptionsReachTheBackendByName) {
  const CompileModuleOptions options = baseline_module_options(setup_baseline("001"));
  EXPECT_EQ(options.options.size(), list_baseline_options({}).size());
  EXPECT_EQ(options.cache_limit, 10000u);
  const GraphCompiler backend = lookup_compiler(options.backend);
  const auto inputs = block_inputs();
  expect_close(backend(block_model(), inputs, options.options)(inputs), compile(block_model())->run(inputs),
               1e-5);
  expect_error(ErrorCode::kInvalidArgument, {"mixed_nn", "did you mean \"mixed_mm\""}, [&] {
    backend(block_model(), inputs, {{"mixed_nn", true}});
  });
  expect_error(ErrorCode::kInvalidArgument, {"mixed_mm", "neither true nor false"}, [&] {
    backend(block_model(), inputs, {{"mixed_mm", 1.5}});
  });
}

TEST(BaselineModule, GradientsAreRefusedNotCutOff) {
  const auto module = block_model();
  const auto function = lookup_compiler(baseline_module_options({}).backend)(module, {}, {});
  auto inputs = block_inputs();
  inputs[0] = inputs[0].toTensor().requires_grad_();
  expect_error(ErrorCode::kUnsupported, {"\"x\"", "requires gradients"}, [&] { function(inputs); });
  const at::NoGradGuard no_grad;
  EXPECT_EQ(function(inputs).size(), 2u);
}

}  // namespace
}  // namespace halftone
