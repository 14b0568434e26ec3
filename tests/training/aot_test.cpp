// AotAutograd's own promises: which compiler gets what, gradients as in eager, counters, refusals.
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <filesystem>
#include <fstream>

#include "halftone/autograd/aot_autograd.h"
#include "halftone/base/log.h"
#include "training/steps.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

AotOptions nop_options() {
  AotOptions options;
  options.fw_compiler = nop_compiler();
  return options;
}

/// A compiler that counts and remembers what it was given.
struct Watched {
  std::shared_ptr<std::vector<std::string>> names = std::make_shared<std::vector<std::string>>();
  std::shared_ptr<int> runs = std::make_shared<int>(0);
  GraphCompiler compiler() const {
    return [names = names, runs = runs](const std::shared_ptr<GraphModule>& module,
                                        const std::vector<c10::IValue>& examples,
                                        const CompilerOptions& options) {
      EXPECT_EQ(examples.size(), module->graph().inputs().size());
      names->push_back(module->name);
      const CompiledFunction inner = nop_compiler()(module, examples, options);
      return [inner, runs](std::vector<c10::IValue> inputs) {
        ++*runs;
        return inner(std::move(inputs));
      };
    };
  }
};

TEST(AotAutograd, ForwardBackwardAndInferenceGoToTheirCompilers) {
  const TrainingModel model = training_model("mlp");
  Watched forward, backward, inference;
  AotOptions options;
  options.fw_compiler = forward.compiler();
  options.bw_compiler = backward.compiler();
  options.inference_compiler = inference.compiler();
  const AotAutograd aot(options);
  const ForwardFunction compiled = aot(*model.module, model.forward, model.examples);
  EXPECT_THAT(*forward.names, ElementsAre("model (forward)"));
  EXPECT_TRUE(backward.names->empty()) << "backward is compiled at its first use";
  const at::Tensor result = compiled(model.examples).toTensor();
  result.sum().backward();
  compiled(model.examples).toTensor().sum().backward();
  EXPECT_THAT(*backward.names, ElementsAre("model (backward)"));
  EXPECT_EQ(*backward.runs, 2);
  {
    const at::NoGradGuard no_grad;
    aot(*model.module, model.forward, model.examples)(model.examples);
  }
  EXPECT_THAT(*inference.names, ElementsAre("model (inference)"));
}

TEST(AotAutograd, NothingRequiresGradMeansInference) {
  Watched forward;
  AotOptions options;
  options.fw_compiler = forward.compiler();
  const auto graph = capture(
      [](const std::vector<c10::IValue>& args) -> c10::IValue { return args[0].toTensor().relu() * 2; },
      {seeded({2, 3})});
  const CompiledFunction compiled = AotAutograd(options)(graph, {seeded({2, 3})});
  EXPECT_THAT(*forward.names, ElementsAre("model (inference)"));
  const at::Tensor x = seeded({2, 3}, 4);
  EXPECT_TRUE(at::equal(compiled({x})[0].toTensor(), x.relu() * 2));
  const at::Tensor wants = x.clone().requires_grad_();
  expect_error(ErrorCode::kGuard, {"requires grad"}, [&] { compiled({wants}); });
}

TEST(AotAutograd, CapturedGraphsGiveWhatEagerGives) {
  for (TrainingModel& model : training_models()) {
    if (!model.capturable || model.name == "dropout" || model.name == "many_results") continue;
    SCOPED_TRACE(model.name);
    const StepResult expected = training_step(model, model.forward);
    const auto graph = capture(*model.module, model.forward, model.examples);
    const CompiledFunction compiled = AotAutograd(nop_options())(graph, model.examples);
    const bool nested = model.name == "nested_arguments";
    const ForwardFunction forward = [&](const std::vector<c10::IValue>& args) -> c10::IValue {
      std::vector<c10::IValue> results = compiled(args);
      return nested ? results.at(0) : c10::IValue(c10::ivalue::Tuple::create(std::move(results)));
    };
    expect_same_step(training_step(model, forward), expected, model.name);
  }
}

void must_not_run(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  throw std::runtime_error("the other fallback saw " + op.operator_name().name);
}

// torch may take the keys for itself one day: a key has one fallback only.
TEST(AotAutograd, KeysWithAFallbackOfTorchAreShared) {
  TrainingModel model = training_model("mlp");
  const StepResult expected = training_step(model, model.forward);
  const auto graph = capture(*model.module, model.forward, model.examples);
  std::vector<c10::RegistrationHandleRAII> others;
  for (const TraceLevel level : {TraceLevel::kAboveAutograd, TraceLevel::kBelowAutograd}) {
    others.push_back(c10::Dispatcher::singleton().registerFallback(
        tracing_key(level), c10::KernelFunction::makeFromBoxedFunction<&must_not_run>(), "test"));
  }
  const auto shared = capture(*model.module, model.forward, model.examples);
  EXPECT_EQ(print_graph(shared->graph()), print_graph(graph->graph()));
  const ForwardFunction compiled = AotAutograd(nop_options())(*model.module, model.forward, model.examples);
  expect_same_step(training_step(model, compiled), expected, model.name);
  EXPECT_TRUE(at::relu(seeded({2})).defined()) << "other calls do not see the keys";
}

at::Tensor scalar_model(const std::vector<c10::IValue>& args) {
  return (args[0].toTensor().tanh() * args[1].toTensor()).sum();
}

ForwardFunction compiled_scalar(const std::vector<c10::IValue>& examples,
                                const AotOptions& options = nop_options()) {
  torch::nn::Module nothing;
  return AotAutograd(options)(
      nothing, [](const std::vector<c10::IValue>& args) -> c10::IValue { return scalar_model(args); },
      examples);
}

TEST(AotAutograd, RetainedGraphsRunTwiceOthersSayWhyNot) {
  const at::Tensor x = seeded({3}).requires_grad_(), y = seeded({3}, 2).requires_grad_();
  const ForwardFunction compiled = compiled_scalar({x, y});
  const at::Tensor kept = compiled({x, y}).toTensor();
  kept.backward({}, /*retain_graph=*/true);
  const at::Tensor once = x.grad().clone();
  kept.backward();
  EXPECT_TRUE(at::allclose(x.grad(), 2 * once));
  EXPECT_THROW(kept.backward(), c10::Error);
}

TEST(AotAutograd, DifferentiatingTwiceIsAnError) {
  const at::Tensor x = seeded({3}).requires_grad_(), y = seeded({3}, 2);
  const at::Tensor result = compiled_scalar({x, y})({x, y}).toTensor();
  const auto gradients = torch::autograd::grad({result}, {x}, {}, true, /*create_graph=*/true);
  EXPECT_TRUE(gradients[0].requires_grad());
  expect_error(ErrorCode::kUnsupported, {"model", "cannot be differentiated twice"},
               [&] { gradients[0].sum().backward(); });
}

TEST(AotAutograd, SavedTensorsThatChangeAreFoundOut) {
  at::Tensor x = seeded({3}).requires_grad_(), y = seeded({3}, 2);
  const at::Tensor result = compiled_scalar({x, y})({x, y}).toTensor();
  y.add_(1);
  EXPECT_THROW(result.backward(), c10::Error);
}

TEST(AotAutograd, HooksRunAsInEager) {
  const TrainingModel model = training_model("mlp");
  at::Tensor weight = model.module->parameters()[0];
  int calls = 0;
  weight.register_hook([&](const at::Tensor& gradient) {
    ++calls;
    return gradient * 2;
  });
  model.forward(model.examples).toTensor().sum().backward();
  const at::Tensor expected = weight.grad().clone();
  model.module->zero_grad();
  calls = 0;
  const ForwardFunction compiled = AotAutograd(nop_options())(*model.module, model.forward, model.examples);
  EXPECT_EQ(calls, 0) << "tracing is no backward pass";
  const at::Tensor result = compiled(model.examples).toTensor();
  int seen = 0;
  result.register_hook([&](const at::Tensor&) { ++seen; });
  result.sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen, 1);
  EXPECT_TRUE(at::allclose(weight.grad(), expected));
}

TEST(AotAutograd, ResultsWithoutGradientsLeaveGradientsUndefined) {
  torch::nn::Module nothing;
  const ForwardFunction forward = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    return std::tuple(args[0].toTensor().exp(), args[1].toTensor().sin());
  };
  const at::Tensor x = seeded({3}).requires_grad_(), y = seeded({3}, 2).requires_grad_();
  const c10::IValue result = AotAutograd(nop_options())(nothing, forward, {x, y})({x, y});
  result.toTupleRef().elements()[1].toTensor().sum().backward();
  EXPECT_FALSE(x.grad().defined());
  EXPECT_TRUE(at::allclose(y.grad(), y.detach().cos()));
}

TEST(AotAutograd, OneTensorGivenTwice) {
  const at::Tensor x = seeded({3}).requires_grad_();
  const ForwardFunction compiled = compiled_scalar({x, x});
  compiled({x, x}).toTensor().backward();
  const at::Tensor found = x.grad().clone();
  x.mutable_grad() = at::Tensor();
  scalar_model({x, x}).backward();
  EXPECT_TRUE(at::allclose(found, x.grad()));
  expect_error(ErrorCode::kGuard, {"one tensor"}, [&] { compiled({x, seeded({3}, 4).requires_grad_()}); });
}

TEST(AotAutograd, ViewsAsInputsAndOtherStridesAreRefused) {
  const at::Tensor base = seeded({4, 6});
  const at::Tensor x = base.t().detach().requires_grad_(), y = base.slice(1, 1, 5).detach();
  torch::nn::Module nothing;
  const ForwardFunction forward = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    return args[0].toTensor().t().slice(1, 0, 4) * args[1].toTensor();
  };
  const ForwardFunction compiled = AotAutograd(nop_options())(nothing, forward, {x, y});
  compiled({x, y}).toTensor().sum().backward();
  const at::Tensor found = x.grad().clone();
  x.mutable_grad() = at::Tensor();
  forward({x, y}).toTensor().sum().backward();
  EXPECT_TRUE(at::equal(found, x.grad()));
  expect_error(ErrorCode::kGuard, {"strides"}, [&] {
    compiled({x.detach().contiguous().requires_grad_(), y});
  });
  expect_error(ErrorCode::kGuard, {"sizes"}, [&] { compiled({seeded({6, 5}).requires_grad_(), y}); });
  expect_error(ErrorCode::kGuard, {"type"}, [&] { compiled({x.detach().to(at::kDouble), y}); });
}

TEST(AotAutograd, InputsThatShareMemory) {
  const at::Tensor base = seeded({6}), w = seeded({4}, 3).requires_grad_();
  const at::Tensor x = base.slice(0, 0, 4), y = base.slice(0, 2, 6);
  torch::nn::Module nothing;
  const ForwardFunction forward = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    return (args[0].toTensor().exp() * args[1].toTensor() * args[2].toTensor()).sum();
  };
  const AotAutograd aot(nop_options());
  const ForwardFunction compiled = aot(nothing, forward, {x, y, w});
  const auto gradient = [&](const ForwardFunction& function) {
    return torch::autograd::grad({function({x, y, w}).toTensor()}, {w})[0];
  };
  EXPECT_TRUE(at::equal(gradient(compiled), gradient(forward)));
}

TEST(AotAutograd, AutocastInsideTheModelIsPartOfTheGraph) {
  torch::nn::Module nothing;
  const ForwardFunction forward = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const at::Tensor product = args[0].toTensor().mm(args[1].toTensor());
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    return product.to(at::kFloat).sum();
  };
  const at::Tensor x = seeded({4, 8}).requires_grad_(), y = seeded({8, 4}, 2).requires_grad_();
  const AotAutograd aot(nop_options());
  const ForwardFunction compiled = aot(nothing, forward, {x, y});
  const auto gradients = [&](const ForwardFunction& function) {
    return torch::autograd::grad({function({x, y}).toTensor()}, {x, y});
  };
  const auto found = gradients(compiled), expected = gradients(forward);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(found[i], expected[i])) << i;
  EXPECT_FALSE(at::equal(found[0], y.detach().sum(1).expand({4, 8}))) << "not in bfloat16";
}

TEST(AotAutograd, WrittenInputsAreWritten) {
  torch::nn::Module nothing;
  const ForwardFunction forward = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    at::Tensor counter = args[1].toTensor();
    counter.add_(1);
    return args[0].toTensor() * counter;
  };
  const at::Tensor x = seeded({3}).requires_grad_();
  at::Tensor counter = at::zeros({1});
  const ForwardFunction compiled = AotAutograd(nop_options())(nothing, forward, {x, counter});
  EXPECT_EQ(counter.item<float>(), 0) << "compiling writes nothing";
  compiled({x, counter});
  const at::Tensor result = compiled({x, counter}).toTensor();
  EXPECT_EQ(counter.item<float>(), 2);
  result.sum().backward();
  EXPECT_TRUE(at::allclose(x.grad(), at::full({3}, 2.0)));
  const at::Tensor whole = at::zeros({3});
  expect_error(ErrorCode::kGuard, {"shares memory"}, [&] {
    compiled({whole.detach().requires_grad_(), whole.slice(0, 0, 1)});
  });
}

TEST(AotAutograd, GradientsThroughWritesToInputsAreRefused) {
  torch::nn::Module nothing;
  const ForwardFunction forward = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    return args[1].toTensor().add_(args[0].toTensor());
  };
  const at::Tensor x = seeded({3}).requires_grad_(), y = at::zeros({3});
  expect_error(ErrorCode::kUnsupported, {"input1", "gradients would flow"}, [&] {
    AotAutograd{nop_options()}(nothing, forward, {x, y});
  });
  EXPECT_TRUE(at::equal(y, at::zeros({3})));
  EXPECT_FALSE(y.requires_grad());
}

TEST(AotAutograd, CountersCountEachCompilationOnce) {
  reset_aot_counters();
  const at::Tensor x = seeded({3}).requires_grad_();
  compiled_scalar({x, x});
  EXPECT_EQ(aot_counters(), (AotCounters{1, 1, 0}));
  AotOptions failing = nop_options();
  failing.fw_compiler = [](const auto&, const auto&, const auto&) -> CompiledFunction {
    throw Error(ErrorCode::kUnsupported, "not today");
  };
  expect_error(ErrorCode::kUnsupported, {"not today"}, [&] { compiled_scalar({x, x}, failing); });
  EXPECT_EQ(aot_counters(), (AotCounters{2, 1, 1}));
  failing.fw_compiler = [](const auto&, const auto&, const auto&) -> CompiledFunction {
    throw RestartAnalysis("again");
  };
  EXPECT_THROW(compiled_scalar({x, x}, failing), RestartAnalysis);
  EXPECT_EQ(aot_counters(), (AotCounters{3, 1, 1}));
  reset_aot_counters();
  EXPECT_EQ(aot_counters(), AotCounters{});
}

TEST(AotAutograd, UnknownOptionsAreNamedInAWarning) {
  std::vector<std::string> messages;
  set_log_sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::kWarning) messages.emplace_back(text);
  });
  const at::Tensor x = seeded({3}).requires_grad_();
  torch::nn::Module nothing;
  AotAutograd{nop_options()}(
      nothing, [](const std::vector<c10::IValue>& args) -> c10::IValue { return args[0].toTensor().sin(); },
      {x}, {{"max_autotune", true}, {"colour", "blue"}});
  set_log_sink({});
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_THAT(messages[0], HasSubstr("colour, max_autotune"));
}

TEST(AotAutograd, DecompositionsAreAskedForOnceAndUsed) {
  int asked = 0;
  Watched forward;
  AotOptions options = nop_options();
  std::vector<std::string> targets;
  options.bw_compiler = [&](const std::shared_ptr<GraphModule>& module, const auto& examples,
                            const auto& given) {
    for (const auto& node : module->graph().nodes()) targets.push_back(node->target());
    return nop_compiler()(module, examples, given);
  };
  options.decompositions = [&] {
    ++asked;
    return default_decompositions();
  };
  const AotAutograd aot(options);
  EXPECT_EQ(asked, 0);
  const TrainingModel model = training_model("mlp_gelu");
  for (int i = 0; i < 2; ++i)
    aot(*model.module, model.forward, model.examples)(model.examples).toTensor().sum().backward();
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(targets, ::testing::Not(::testing::Contains("aten::gelu_backward")));
  EXPECT_THAT(targets, ::testing::Contains("aten::mm"));
}

TEST(AotAutograd, GraphsAreWrittenWhereTheOptionSays) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("halftone_aot_{}", getpid());
  AotOptions options = nop_options();
  options.log = GraphLog{false, folder.string()};
  options.name = "my model";
  const at::Tensor x = seeded({3}).requires_grad_();
  compiled_scalar({x, x}, options);
  std::vector<std::string> parts;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(entry.path());
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    EXPECT_NO_THROW(parse_graph(text)) << entry.path();
    const std::string name = entry.path().filename().string();
    parts.push_back(name.substr(name.find('.')));
  }
  std::filesystem::remove_all(folder);
  EXPECT_THAT(parts, ::testing::UnorderedElementsAre(".joint.txt", ".forward.txt", ".backward.txt"));
}

TEST(AotAutograd, TheEnvironmentSwitchesTheLogOn) {
  std::vector<std::string> messages;
  set_log_sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::kInfo) messages.emplace_back(text.substr(0, text.find(' ')));
  });
  const at::Tensor x = seeded({3}).requires_grad_();
  setenv("HALFTONE_LOG_GRAPHS", "log", 1);
  compiled_scalar({x, x});
  unsetenv("HALFTONE_LOG_GRAPHS");
  compiled_scalar({x, x});
  set_log_sink({});
  EXPECT_THAT(messages, ElementsAre("joint", "forward", "backward"));
}

TEST(AotAutograd, ResultsAreComparedWithTheTraceWhereAsked) {
  AotOptions options = nop_options();
  options.fw_compiler = [](const auto& module, const auto& examples, const auto& given) -> CompiledFunction {
    const CompiledFunction inner = nop_compiler()(module, examples, given);
    return [inner](std::vector<c10::IValue> inputs) {
      std::vector<c10::IValue> outputs = inner(std::move(inputs));
      outputs[0] = outputs[0].toTensor().unsqueeze(0);
      return outputs;
    };
  };
  const at::Tensor x = seeded({3}).requires_grad_();
  EXPECT_NO_THROW(compiled_scalar({x, x}, options)({x, x})) << "off for compilers of others";
  options.debug_assert = true;
  expect_error(ErrorCode::kInternal, {"result 0", "traced was"}, [&] {
    compiled_scalar({x, x}, options)({x, x});
  });
}

TEST(AotAutograd, DropoutDrawsAsEagerDoesAndOnlyOnce) {
  TrainingModel model = training_model("dropout");
  AotOptions options = nop_options();
  options.partition_fn = [](const JointGraph& joint) {
    return min_cut_rematerialization_partition(joint, {0.0});
  };
  const ForwardFunction compiled = AotAutograd(options)(*model.module, model.forward, model.examples);
  for (const int64_t seed : {1, 2})
    expect_same_step(training_step(model, compiled, seed), training_step(model, model.forward, seed),
                     "seeded");
}

TEST(AotHelpers, DeviceAndTypeOfInputs) {
  EXPECT_EQ(device_from_inputs({}), c10::Device(c10::kCPU));
  EXPECT_EQ(dtype_from_inputs({c10::IValue(3)}), c10::kFloat);
  EXPECT_EQ(dtype_from_inputs({c10::IValue(3), at::zeros({2}, at::kHalf)}), c10::kHalf);
  EXPECT_EQ(device_from_inputs({at::empty({2}, at::device(c10::kMeta))}), c10::Device(c10::kMeta));
}

TEST(AotHelpers, CompilersThatNeedRealInputsGetZeros) {
  std::vector<c10::IValue> given;
  const GraphCompiler compiler = fake_tensor_unsupported(
      [&](const auto&, const std::vector<c10::IValue>& examples, const auto&) -> CompiledFunction {
        given = examples;
        return {};
      });
  const at::Tensor real = seeded({2});
  compiler(nullptr, {at::empty({2, 3}, at::device(c10::kMeta).dtype(c10::kLong)), real, c10::IValue(7)}, {});
  EXPECT_TRUE(at::equal(given[0].toTensor(), at::zeros({2, 3}, at::kLong)));
  EXPECT_TRUE(given[1].toTensor().is_same(real));
  EXPECT_EQ(given[2].toInt(), 7);
}

}  // namespace
}  // namespace halftone
