// The promises of build(): the module is left alone, failures leave INIT, and the model's state is the
// backend's own.
#include <torch/nn/module.h>

#include <thread>

#include "backend/lifecycle/test_support.h"
#include "halftone/base/log.h"

namespace halftone {
namespace {

/// Keeps each x in its next row, as a decoder keeps keys and values, and gives the sum of all times a weight.
struct CachingModule : torch::nn::Module {
  CachingModule()
      : weight(register_parameter("weight", test_weight({4, 4}))),
        unused(register_parameter("unused", test_weight({2}))),
        cache(register_buffer("cache", at::zeros({4}))) {}
  at::Tensor forward(const at::Tensor& x) {
    ++calls;
    cache.add_(x);
    return at::matmul(cache, weight);
  }
  at::Tensor weight, unused, cache;
  int calls = 0;
};

/// Takes any number of rows.
struct RowsModule : torch::nn::Module {
  RowsModule() : weight(register_parameter("weight", test_weight({4, 4}))) {}
  at::Tensor forward(const at::Tensor& x) {
    ++calls;
    return at::matmul(x, weight).softmax(-1);
  }
  at::Tensor weight;
  int calls = 0;
};

template <typename Module>
ModelSource source_of(const std::shared_ptr<Module>& module) {
  return {module, [module](const std::vector<c10::IValue>& args) -> c10::IValue {
            return module->forward(args.at(0).toTensor());
          }};
}

/// Warnings of the library while it lives.
class Warnings {
 public:
  Warnings() {
    set_log_sink([this](LogLevel level, std::string_view text) {
      if (level == LogLevel::kWarning) all.emplace_back(text);
    });
  }
  ~Warnings() { set_log_sink({}); }
  std::vector<std::string> all;
};

/// Fails as often as it is told, then is eager.
class FailingRecipe : public BackendRecipe {
 public:
  explicit FailingRecipe(int failures) : left_(failures) {}
  std::string type() const override { return "FailingBackend"; }
  std::string config() const override { return "{}"; }
  std::string describe_config() const override { return {}; }
  ReadyModel prepare(const std::shared_ptr<const GraphModule>& original, const std::vector<Sample>& samples,
                     const std::string& cache_dir) const override {
    if (left_-- > 0) throw std::runtime_error("no luck");
    return eager_backend_recipe()->prepare(original, samples, cache_dir);
  }
  mutable std::atomic<int> left_;
};

struct DifferenceModule : torch::nn::Module {
  DifferenceModule() : weight(register_parameter("weight", test_weight({4, 4}))) {}
  at::Tensor forward(const at::Tensor& a, const at::Tensor& b) { return at::linear(a, weight) - b * 2; }
  at::Tensor weight;
};

class BuildOfModule : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, BuildOfModule,
                         testing::Values("EagerBackend", "TorchScriptBackend", "HalftoneBackend"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(BuildOfModule, OneTensorTwiceInASampleIsTwoInputs) {
  const auto module = std::make_shared<DifferenceModule>();
  const ModelSource source(module, [module](const std::vector<c10::IValue>& args) -> c10::IValue {
    return module->forward(args.at(0).toTensor(), args.at(1).toTensor());
  });
  const at::Tensor x = test_weight({3, 4}), a = test_weight({3, 4}) + 1, b = test_weight({3, 4}) * 2;
  Backend backend(GetParam());
  backend.build(source, {}, {{{x, x}, {}}});
  EXPECT_TRUE(at::allclose(backend.infer({a, b}).toTensor(), module->forward(a, b), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(backend.infer({a, a}).toTensor(), module->forward(a, a), 1e-5, 1e-6));
}

TEST_P(BuildOfModule, CallsItOnceAndLeavesItsState) {
  const auto module = std::make_shared<CachingModule>();
  module->cache.fill_(3);
  at::manual_seed(7);
  Backend backend(GetParam());
  backend.build(source_of(module), {.name = "decoder"},
                {{{at::ones({4})}, {}}, {{at::full({4}, 2.)}, {}}, {{at::full({4}, 3.)}, {}}});
  EXPECT_EQ(module->calls, 1);
  EXPECT_TRUE(at::equal(module->cache, at::full({4}, 3.)));
  const at::Tensor drawn = at::rand({2});
  at::manual_seed(7);
  EXPECT_TRUE(at::equal(drawn, at::rand({2})));

  // The first call sees the state as it was before build, the next ones what calls before them left.
  const CachingModule eager;
  at::Tensor cache = at::full({4}, 3.);
  for (int call = 0; call < 5; ++call) {
    const at::Tensor x = test_weight({4}).mul(call + 1);
    cache = cache + x;
    EXPECT_TRUE(at::allclose(infer_one(backend, x), at::matmul(cache, eager.weight))) << call;
  }
  EXPECT_EQ(module->calls, 1);
  EXPECT_TRUE(at::equal(module->cache, at::full({4}, 3.)));

  backend.deactivate();
  backend.activate();
  EXPECT_TRUE(at::allclose(infer_one(backend, at::ones({4})), at::matmul(at::full({4}, 4.), eager.weight)))
      << "state begins anew";
}

TEST(LifecycleSession, RunsTheDeployedModelAndNotBeforeIt) {
  Backend backend(halftone_backend_recipe());
  expect_error(ErrorCode::kState, {"should be activated first"}, [&] { backend.session(); });
  const auto module = small_model();
  const at::Tensor x = test_weight({3, 64});
  Sample sample;
  sample.args = {x};
  backend.build(module, {}, {sample});
  Session session = backend.session();
  EXPECT_TRUE(at::equal(session.run({x})[0].toTensor(), infer_one(backend, x)));
  backend.deactivate();
  expect_error(ErrorCode::kState, {"should be activated first"}, [&] { backend.session(); });
  // It keeps the model that it was made of.
  EXPECT_TRUE(
      at::allclose(session.run({x})[0].toTensor(), Session(module).run({x})[0].toTensor(), 1e-5, 1e-6));
}

TEST_P(BuildOfModule, SamplesOfSeveralSizesMakeThemDynamic) {
  const auto module = std::make_shared<RowsModule>();
  Backend backend(GetParam());
  backend.build(source_of(module), {}, {{{test_weight({3, 4})}, {}}, {{test_weight({5, 4})}, {}}});
  EXPECT_GE(module->calls, 2);
  for (const int64_t rows : {1, 3, 5, 11}) {
    const at::Tensor x = test_weight({rows, 4});
    EXPECT_TRUE(at::allclose(infer_one(backend, x), module->forward(x), 1e-5, 1e-6)) << rows;
  }
}

TEST_P(BuildOfModule, DeclaredSizesAreDynamicAndStateIsPutBack) {
  const auto module = std::make_shared<RowsModule>();
  Backend backend(GetParam());
  GraphSpec spec{.name = "rows", .input_names = {"tokens"}};
  spec.dynamic.push_back({.input = "tokens", .dim = 0, .symbol = "batch", .min = 1, .max = 64});
  backend.build(source_of(module), spec, {{{test_weight({3, 4})}, {}}});
  const at::Tensor x = test_weight({9, 4});
  EXPECT_TRUE(at::allclose(infer_one(backend, x), module->forward(x), 1e-5, 1e-6));
  expect_error(ErrorCode::kGuard, {"tokens"}, [&] { infer_one(backend, test_weight({65, 4})); });
}

TEST(Build, RefusesOtherDevicesBeforeAnythingElse) {
  const Warnings warnings;
  const auto module = std::make_shared<CachingModule>();
  Backend backend("EagerBackend");
  const auto build = [&](at::Device device) {
    backend.build(source_of(module), {}, {{{at::ones({4})}, {}}}, device);
  };
  expect_error(ErrorCode::kUnsupported, {"EagerBackend", "cuda"}, [&] { build(at::Device("cuda:0")); });
  EXPECT_EQ(module->calls, 0);
  EXPECT_EQ(backend.state(), BackendState::kInit);
  ASSERT_EQ(warnings.all.size(), 1u);
  EXPECT_NE(warnings.all[0].find("EagerBackend"), std::string::npos) << warnings.all[0];
  build(at::kCPU);
  EXPECT_EQ(backend.state(), BackendState::kActive);
}

TEST(Build, FailureOfAKindIsLoggedRethrownAndStaysInit) {
  const Warnings warnings;
  Backend backend(std::make_shared<const FailingRecipe>(2));
  for (size_t attempt = 1; attempt <= 2; ++attempt) {
    EXPECT_THROW(backend.build(small_model(), {}, test_samples()), std::runtime_error);
    EXPECT_EQ(backend.state(), BackendState::kInit);
    ASSERT_EQ(warnings.all.size(), attempt);
    EXPECT_NE(warnings.all.back().find("FailingBackend: no luck"), std::string::npos) << warnings.all.back();
  }
  expect_error(ErrorCode::kState, {"FailingBackend", "INIT"}, [&] { backend.to_dict(); });
  backend.build(small_model(), {}, test_samples());
  EXPECT_EQ(infer_one(backend, test_input()).sizes(), test_input().sizes());
  EXPECT_EQ(warnings.all.size(), 2u);
}

TEST(Build, GraphThatAKindCannotTakeStaysInit) {
  const Warnings warnings;
  const auto sizes = module_from_text(R"(
graph(%x: user "x" f32[s0, 4]) {
  %n: int(s0) = aten::sym_size.int(%x, 0)
  %m: int(2*s0) = sym::mul(%n, 2)  @ "head" "Head"
  %y: f32[2*s0, 2] = aten::reshape(%x, [%m, 2])
  return %y
})");
  Backend script("TorchScriptBackend");
  expect_error(ErrorCode::kUnsupported, {"TorchScriptBackend"}, [&] {
    script.build(sizes, {}, {{{test_weight({3, 4})}, {}}});
  });
  EXPECT_EQ(script.state(), BackendState::kInit);
  EXPECT_EQ(warnings.all.size(), 1u);
  EXPECT_EQ(script.build(small_model(), {}, {}).state(), BackendState::kActive);

  const auto no_linear =
      module_from_text("graph(%x: user \"x\" f32[4]) {\n  %y: f32[4] = aten::relu(%x)\n  return %y\n}");
  Backend quant("QuantBackend");
  expect_error(ErrorCode::kInvalidArgument, {"QuantBackend", "nothing to quantize"},
               [&] { quant.build(no_linear, {}, {}); });
  EXPECT_EQ(quant.state(), BackendState::kInit);
}

TEST(Build, RefusesWhatDoesNotFitTogether) {
  const auto module = std::make_shared<CachingModule>();
  const auto build = [](const ModelSource& source, const GraphSpec& spec, std::vector<Sample> samples) {
    Backend("EagerBackend").build(source, spec, samples);
  };
  expect_error(ErrorCode::kInvalidArgument, {"sample"}, [&] { build(source_of(module), {}, {}); });
  expect_error(ErrorCode::kInvalidArgument, {"keyword"}, [&] {
    build(source_of(module), {}, {{{}, {{"x", at::ones({4})}}}});
  });
  expect_error(ErrorCode::kInvalidArgument, {"no model"},
               [&] { build(ModelSource(std::shared_ptr<GraphModule>()), {}, {}); });
  expect_error(ErrorCode::kInvalidArgument, {"GraphSpec"},
               [&] { build(small_model(), {.input_names = {"x"}}, {}); });
  expect_error(ErrorCode::kGuard, {"EagerBackend", "sample 1", "\"x\""}, [&] {
    build(small_model(), {}, {{{test_input()}, {}}, {{at::ones({3, 5})}, {}}});
  });
}

TEST(Build, GraphMayBeRewrittenByItsOwnerAfterwards) {
  const auto graph = small_model();
  Backend backend("EagerBackend");
  backend.build(graph, {.name = "mine"}, {});
  const at::Tensor expected = infer_one(backend, test_input());
  quantize_(*graph, "int4wo");
  EXPECT_TRUE(at::equal(infer_one(backend, test_input()), expected));
}

TEST(Activate, FailureLeavesTheState) {
  Backend backend(std::make_shared<const FailingRecipe>(0));
  backend.build(small_model(), {}, {});
  backend.deactivate();
  const auto& recipe = *BackendAccess::content(backend).recipe;
  dynamic_cast<const FailingRecipe&>(recipe).left_ = 1;
  EXPECT_THROW(backend.activate(), std::runtime_error);
  EXPECT_EQ(backend.state(), BackendState::kInactive);
  backend.activate();
  EXPECT_TRUE(backend.is_active());
}

TEST(Deploy, ChecksTheDeviceAndKeepsTheStoredOne) {
  Backend backend = loaded(eager_backend_recipe());
  expect_error(ErrorCode::kUnsupported, {"EagerBackend", "cuda"},
               [&] { backend.deploy(at::Device("cuda")); });
  EXPECT_EQ(backend.state(), BackendState::kCheckpointLoaded);
  backend.deploy();
  EXPECT_EQ(backend.device(), at::Device(at::kCPU));
  EXPECT_EQ(backend.state(), BackendState::kDeployed);

  BackendContent content;
  content.recipe = eager_backend_recipe();
  content.original = small_model();
  content.device = at::Device("cuda");
  Backend elsewhere = BackendAccess::loaded(content);
  EXPECT_EQ(elsewhere.device(), at::Device("cuda"));
  expect_error(ErrorCode::kUnsupported, {"cuda"}, [&] { elsewhere.deploy(); });
  expect_error(ErrorCode::kUnsupported, {"cuda"}, [&] { elsewhere.activate(); });
  elsewhere.deploy(at::Device(at::kCPU));
  EXPECT_EQ(elsewhere.device(), at::Device(at::kCPU));
}

TEST(StatefulModel, CallsOfSeveralThreadsTakeTurns) {
  Backend backend("HalftoneBackend");
  backend.build(running_sum(), {}, {});
  constexpr int kThreads = 4, kCalls = 200;
  std::vector<std::vector<double>> seen(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&backend, &mine = seen[static_cast<size_t>(i)]] {
      for (int call = 0; call < kCalls; ++call)
        mine.push_back(infer_one(backend, at::ones({4})).select(0, 3).item<double>());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  for (const auto& some : seen) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<double>(i + 1));
}

/// Switches its own backend off from inside of infer().
class CallingBack : public BackendRecipe {
 public:
  std::string type() const override { return "CallingBack"; }
  std::string config() const override { return "{}"; }
  std::string describe_config() const override { return {}; }
  ReadyModel prepare(const std::shared_ptr<const GraphModule>& original, const std::vector<Sample>& samples,
                     const std::string&) const override {
    ReadyModel ready = eager_backend_recipe()->prepare(original, samples, {});
    ready.executor = std::make_shared<const Executor>(original->graph().clone(), hook);
    return ready;
  }
  struct Executor : GraphExecutor {
    Executor(std::shared_ptr<const Graph> graph, std::function<void()> hook)
        : graph_(std::move(graph)), hook_(std::move(hook)) {}
    std::vector<c10::IValue> run(const ExecutorCall& call) const override {
      hook_();
      return {call.inputs.at(0)};
    }
    const Graph& graph() const override { return *graph_; }
    std::shared_ptr<const Graph> graph_;
    std::function<void()> hook_;
  };
  std::function<void()> hook;
};

TEST(Infer, RefusesToWaitForItself) {
  const auto recipe = std::make_shared<CallingBack>();
  std::optional<Backend> backend;
  recipe->hook = [&backend] { backend->deactivate(); };
  backend.emplace(recipe);
  backend->build(small_model(), {}, {});
  expect_error(ErrorCode::kState, {"CallingBack", "ACTIVE", "inside its infer()"},
               [&] { backend->infer({test_input()}); });
  EXPECT_TRUE(backend->is_active());
  backend->deactivate();
  EXPECT_EQ(backend->state(), BackendState::kInactive);
}

}  // namespace
}  // namespace halftone
