// compile(): a drop-in that makes a graph when a call needs another one, and not otherwise.
#include "halftone/compile/compile_module.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <fstream>

#include "training/steps.h"

namespace halftone {
namespace {

torch::nn::Sequential small_model() {
  torch::manual_seed(2);
  return torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::BatchNorm1d(8), torch::nn::Linear(8, 2));
}

ForwardFunction forward_of(const torch::nn::Sequential& model) {
  auto impl = model.ptr();
  return [impl](const std::vector<c10::IValue>& args) -> c10::IValue {
    return impl->forward(args[0].toTensor());
  };
}

CompileModuleOptions with_backend(const std::string& backend) {
  CompileModuleOptions options;
  options.backend = backend;
  return options;
}

TEST(CompileModule, EveryBackendGivesWhatEagerGives) {
  for (const char* backend :
       {"eager", "aot_eager", "aot_eager_decomp_partition", "ts", "aot_ts", "halftone"}) {
    for (TrainingModel& model : training_models()) {
      SCOPED_TRACE(model.name + " with " + backend);
      const StepResult expected = training_step(model, model.forward);
      const CompiledModule compiled = compile(model.module, model.forward, with_backend(backend));
      const ForwardFunction forward = [&](const std::vector<c10::IValue>& args) { return compiled(args); };
      expect_same_step(training_step(model, forward), expected, "training");
      EXPECT_EQ(compiled.counters().compilations, 1);
      if (model.name == "dropout") continue;
      model.module->eval();
      const at::NoGradGuard no_grad;
      std::vector<at::Tensor> buffers;
      for (const at::Tensor& buffer : model.module->buffers()) buffers.push_back(buffer.clone());
      const c10::IValue expected_result = model.forward(model.examples);
      for (size_t i = 0; i < buffers.size(); ++i) model.module->buffers()[i].copy_(buffers[i]);
      expect_same(compiled(model.examples), expected_result, 1e-5, "inference");
    }
  }
}

TEST(CompileModule, MakesAGraphForEachKindOfCall) {
  auto model = small_model();
  const CompiledModule compiled = compile(model.ptr(), forward_of(model), with_backend("aot_eager"));
  const auto made = [&] { return compiled.counters().compilations; };
  compiled({seeded({3, 4})});
  compiled({seeded({3, 4}, 2)});
  EXPECT_EQ(made(), 1);
  compiled({seeded({5, 4})});
  EXPECT_EQ(made(), 2) << "another size";
  model->eval();
  compiled({seeded({3, 4})});
  EXPECT_EQ(made(), 3) << "another mode of the module";
  {
    const at::NoGradGuard no_grad;
    compiled({seeded({3, 4})});
    EXPECT_EQ(made(), 4) << "another grad mode";
  }
  compiled({seeded({3, 4}).requires_grad_()});
  EXPECT_EQ(made(), 5) << "the input requires grad";
  compiled({seeded({4, 3}).t()});
  EXPECT_EQ(made(), 6) << "other strides";
  model->train();
  compiled({seeded({3, 4})});
  EXPECT_EQ(made(), 6) << "the first one again";
  EXPECT_EQ(compiled.counters().calls, 8);
}

TEST(CompileModule, PastTheLimitItRunsEagerOrFails) {
  auto model = small_model();
  CompileModuleOptions options = with_backend("aot_eager");
  options.cache_limit = 1;
  const CompiledModule compiled = compile(model.ptr(), forward_of(model), options);
  model->eval();
  compiled({seeded({3, 4})});
  expect_same(compiled({seeded({5, 4})}), model->forward(seeded({5, 4})), 0);
  EXPECT_EQ(compiled.counters().eager_calls, 1);
  options.past_limit = CompileModuleOptions::PastLimit::kError;
  const CompiledModule strict = compile(model.ptr(), forward_of(model), options);
  strict({seeded({3, 4})});
  expect_error(ErrorCode::kState, {"cache_limit"}, [&] { strict({seeded({5, 4})}); });
  strict.reset();
  EXPECT_NO_THROW(strict({seeded({5, 4})}));
}

TEST(CompileModule, ParametersStayTheModules) {
  for (const char* backend : {"eager", "aot_eager", "halftone"}) {
    auto model = small_model();
    model->eval();
    const CompiledModule compiled = compile(model.ptr(), forward_of(model), with_backend(backend));
    const at::NoGradGuard no_grad;
    const at::Tensor x = seeded({3, 4});
    compiled({x});
    model->parameters()[0].mul_(3);
    expect_same(compiled({x}), model->forward(x), 1e-5, backend);
    model[0]->as<torch::nn::Linear>()->weight.set_data(seeded({8, 4}, 9));
    expect_same(compiled({x}), model->forward(x), 1e-5, backend);
  }
}

TEST(CompileModule, DynamicSizesShareOneGraph) {
  auto model = small_model();
  model->eval();
  CompileModuleOptions options = with_backend("halftone");
  options.dynamic = true;
  const CompiledModule compiled = compile(model.ptr(), forward_of(model), options);
  const at::NoGradGuard no_grad;
  for (const int64_t rows : {5, 3, 12, 7})
    expect_same(compiled({seeded({rows, 4})}), model->forward(seeded({rows, 4})), 1e-5);
  EXPECT_EQ(compiled.counters().compilations, 1);
}

TEST(CompileModule, PlainFunctionsWithTensorsOfTheirOwn) {
  const at::Tensor weight = seeded({3, 3}).requires_grad_();
  const ForwardFunction function = [weight](const std::vector<c10::IValue>& args) -> c10::IValue {
    return args[0].toTensor().mm(weight).sum();
  };
  const CompiledModule compiled = compile(function, with_backend("aot_eager"));
  const at::Tensor x = seeded({2, 3}, 3);
  compiled({x}).toTensor().backward();
  const at::Tensor found = weight.grad().clone();
  weight.mutable_grad() = at::Tensor();
  function({x}).toTensor().backward();
  EXPECT_TRUE(at::allclose(found, weight.grad()));
}

TEST(CompileModule, UnknownBackendsAreNamed) {
  auto model = small_model();
  expect_error(ErrorCode::kNotFound, {"haltone", "halftone"},
               [&] { compile(model.ptr(), forward_of(model), with_backend("haltone")); });
}

TEST(CompileModule, ThousandCyclesWithoutGrowth) {
  const auto resident = [] {
    std::ifstream status("/proc/self/statm");
    int64_t total = 0, pages = 0;
    status >> total >> pages;
    return pages * 4096;
  };
  TrainingModel model = training_model("mlp");
  const auto cycle = [&] {
    const CompiledModule compiled = compile(model.module, model.forward, with_backend("aot_eager"));
    compiled(model.examples).toTensor().sum().backward();
  };
  for (int i = 0; i < 200; ++i) cycle();
  const int64_t before = resident();
  for (int i = 0; i < 1000; ++i) cycle();
  EXPECT_LT(resident() - before, 4 << 20);
}

}  // namespace
}  // namespace halftone
