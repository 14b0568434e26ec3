// Misuse that must be an error and never a crash: handles that are null, and compilers of users that keep no
// promise.
#include <torch/nn/modules/linear.h>

#include "halftone/autograd/aot_autograd.h"
#include "halftone/compile/compile.h"
#include "halftone/compile/compile_module.h"
#include "halftone/compile/compilers.h"
#include "halftone/compile/minify.h"
#include "training/steps.h"

namespace halftone {
namespace {

using Results = std::vector<c10::IValue>;

AotOptions nop() {
  AotOptions options;
  options.fw_compiler = nop_compiler();
  return options;
}

/// Runs the graph, then does something to the results.
GraphCompiler spoilt(std::function<void(Results&)> spoil) {
  return [spoil](const std::shared_ptr<GraphModule>& module, const std::vector<c10::IValue>& examples,
                 const CompilerOptions& options) -> CompiledFunction {
    return [spoil, inner = nop_compiler()(module, examples, options)](std::vector<c10::IValue> inputs) {
      Results results = inner(std::move(inputs));
      spoil(results);
      return results;
    };
  };
}

CompiledFunction no_function(const std::shared_ptr<GraphModule>&, const std::vector<c10::IValue>&,
                             const CompilerOptions&) {
  return {};
}

struct Spoilt {
  std::function<void(Results&)> spoil;
  const char* message;
};

const std::vector<Spoilt>& spoilt_results() {
  static const std::vector<Spoilt> all = {
      {[](Results& results) { results.clear(); }, "gave 0 results"},
      {[](Results& results) { results.emplace_back(1); }, "results where the graph has"},
      {[](Results& results) { results[0] = c10::IValue(); }, "result 0 of its function is None"},
      {[](Results& results) { results[0] = 3; }, "result 0 of its function is Int"},
      {[](Results& results) { results[0] = at::Tensor(); }, "an undefined tensor"},
  };
  return all;
}

const ForwardFunction kSquare = [](const std::vector<c10::IValue>& args) -> c10::IValue {
  return args[0].toTensor().exp() * args[0].toTensor();
};

TEST(Refusals, ResultsOfForwardCompilers) {
  torch::nn::Module nothing;
  const at::Tensor x = seeded({3}).requires_grad_();
  for (const Spoilt& each : spoilt_results()) {
    AotOptions options;
    options.fw_compiler = spoilt(each.spoil);
    const ForwardFunction trained = AotAutograd{options}(nothing, kSquare, {x});
    expect_error(ErrorCode::kInvalidArgument, {"fw_compiler", each.message}, [&] { trained({x}); });
    const ForwardFunction inferred = AotAutograd{options}(nothing, kSquare, {x.detach()});
    expect_error(ErrorCode::kInvalidArgument, {"inference_compiler", each.message},
                 [&] { inferred({x.detach()}); });
  }
}

TEST(Refusals, ResultsOfBackwardCompilers) {
  torch::nn::Module nothing;
  const at::Tensor x = seeded({3}).requires_grad_();
  for (const Spoilt& each : spoilt_results()) {
    AotOptions options = nop();
    options.bw_compiler = spoilt(each.spoil);
    const at::Tensor loss = AotAutograd{options}(nothing, kSquare, {x})({x}).toTensor().sum();
    expect_error(ErrorCode::kInvalidArgument, {"bw_compiler", each.message}, [&] { loss.backward(); });
    EXPECT_FALSE(x.grad().defined());
  }
}

TEST(Refusals, ResultsOfRegisteredBackends) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < spoilt_results().size(); ++i) {
    const std::string name = "spoilt" + std::to_string(i);
    const auto spoil = spoilt_results()[i].spoil;
    register_compiler({name, {}, ""}, spoilt(spoil));
    CompileModuleOptions options;
    options.backend = name;
    expect_error(ErrorCode::kInvalidArgument, {"backend \"" + name, spoilt_results()[i].message},
                 [&] { compile(kSquare, options)({seeded({3})}); });
  }
}

TEST(Refusals, CompilersThatMakeNothing) {
  torch::nn::Module nothing;
  const at::Tensor x = seeded({3}).requires_grad_();
  expect_error(ErrorCode::kInvalidArgument, {"fw_compiler is null"}, [] { AotAutograd{AotOptions()}; });
  AotOptions options;
  options.fw_compiler = no_function;
  expect_error(ErrorCode::kInvalidArgument, {"fw_compiler", "is null"},
               [&] { AotAutograd{options}(nothing, kSquare, {x}); });
  options = nop();
  options.bw_compiler = no_function;
  const at::Tensor loss = AotAutograd{options}(nothing, kSquare, {x})({x}).toTensor().sum();
  expect_error(ErrorCode::kInvalidArgument, {"bw_compiler", "is null"}, [&] { loss.backward(); });
  options = nop();
  options.partition_fn = [](const JointGraph&) { return PartitionedGraphs(); };
  expect_error(ErrorCode::kInvalidArgument, {"partitioner"},
               [&] { AotAutograd{options}(nothing, kSquare, {x}); });
  register_compiler({"makes_nothing", {}, ""}, no_function);
  CompileModuleOptions module_options;
  module_options.backend = "makes_nothing";
  const at::NoGradGuard no_grad;
  expect_error(ErrorCode::kInvalidArgument, {"makes_nothing", "is null"},
               [&] { compile(kSquare, module_options)({seeded({3})}); });
}

TEST(Refusals, NullHandles) {
  const std::shared_ptr<GraphModule> none;
  torch::nn::Module nothing;
  expect_error(ErrorCode::kInvalidArgument, {"Session", "null"}, [&] { Session session(none); });
  expect_error(ErrorCode::kInvalidArgument, {"GraphModule", "null"}, [] { GraphModule(nullptr, {}, {}); });
  expect_error(ErrorCode::kInvalidArgument, {"compile", "null"},
               [&] { compile(std::shared_ptr<const GraphModule>()); });
  expect_error(ErrorCode::kInvalidArgument, {"compile", "null"},
               [] { compile(std::shared_ptr<torch::nn::LinearImpl>()); });
  expect_error(ErrorCode::kInvalidArgument, {"compile", "null"},
               [] { compile(std::shared_ptr<torch::nn::Module>(), kSquare); });
  expect_error(ErrorCode::kInvalidArgument, {"function", "null"}, [] { compile(ForwardFunction()); });
  expect_error(ErrorCode::kInvalidArgument, {"function", "null"},
               [] { capture(ForwardFunction(), {seeded({2})}); });
  const AotAutograd aot(nop());
  expect_error(ErrorCode::kInvalidArgument, {"module", "null"}, [&] { aot(none, {seeded({2})}); });
  expect_error(ErrorCode::kInvalidArgument, {"function", "null"},
               [&] { aot(nothing, ForwardFunction(), {seeded({2})}); });
  expect_error(ErrorCode::kInvalidArgument, {"null"}, [] { fake_tensor_unsupported({}); });
  expect_error(ErrorCode::kInvalidArgument, {"nobody"}, [] { register_compiler({"nobody", {}, ""}, {}); });
  for (const CompilerInfo& info : list_compilers({})) {
    if (info.name.starts_with("spoilt") || info.name == "makes_nothing") continue;
    expect_error(ErrorCode::kInvalidArgument, {"null"}, [&] { lookup_compiler(info.name)(none, {}, {}); });
  }
  expect_error(ErrorCode::kInvalidArgument, {"module", "null"}, [&] { find_failure({}, nop_compiler()); });
  expect_error(ErrorCode::kInvalidArgument, {"module", "null"}, [&] { minify({}, nop_compiler()); });
  const auto graph = capture(kSquare, {seeded({2})});
  expect_error(ErrorCode::kInvalidArgument, {"backend", "null"}, [&] {
    minify({graph, {seeded({2})}}, GraphCompiler());
  });
}

TEST(Refusals, UnknownDecompositionsGetTheNearestName) {
  torch::nn::Module nothing;
  AotOptions options = nop();
  options.decompositions = DecompositionTable{{"aten::tahn", [](torch::jit::Stack&) {}}};
  expect_error(ErrorCode::kInvalidArgument, {"aten::tahn", "did you mean \"aten::tan"},
               [&] { AotAutograd{options}(nothing, kSquare, {seeded({3})}); });
  options.decompositions = DecompositionTable{{"aten::tanh", {}}};
  expect_error(ErrorCode::kInvalidArgument, {"aten::tanh", "null"},
               [&] { AotAutograd{options}(nothing, kSquare, {seeded({3})}); });
  options.decompositions = core_decompositions();
  EXPECT_NO_THROW(AotAutograd{options}(nothing, kSquare, {seeded({3})}));
}

TEST(Refusals, CompileOptionsOutOfRange) {
  const auto graph = capture(kSquare, {seeded({3})});
  expect_error(ErrorCode::kInvalidArgument, {"threads", "-1"}, [&] { compile(graph, {.threads = -1}); });
  expect_error(ErrorCode::kInvalidArgument, {"max_plans"}, [&] { compile(graph, {.max_plans = 0}); });
  expect_error(ErrorCode::kInvalidArgument, {"max_plans", "from 1 on"}, [&] {
    lookup_compiler("halftone")(graph, {}, {{"max_plans", 0}});
  });
}

TEST(Refusals, InputsAndOutputsThatAreNone) {
  const auto graph = capture(kSquare, {seeded({3})});
  expect_error(ErrorCode::kGuard, {"expected a tensor, found an undefined tensor"}, [&] {
    Session session(graph);
    session({at::Tensor()});
  });
  const auto compiled = compile(graph);
  expect_error(ErrorCode::kGuard, {"expected a tensor, found an undefined tensor"},
               [&] { compiled->run({at::Tensor()}); });
  expect_error(ErrorCode::kInvalidArgument, {"output 0", "strides [0]"},
               [&] { compiled->run_into({seeded({3})}, {at::zeros({1}).expand({3})}); });
  torch::nn::Module nothing;
  const ForwardFunction aot = AotAutograd{nop()}(nothing, kSquare, {seeded({3})});
  expect_error(ErrorCode::kInvalidArgument, {"expected a tensor, found an undefined tensor"},
               [&] { aot({at::Tensor()}); });
}

TEST(Refusals, AModuleThatBecameAnother) {
  torch::nn::Linear model(4, 2);
  const ForwardFunction forward = [impl = model.ptr()](const std::vector<c10::IValue>& args) -> c10::IValue {
    return impl->forward(args[0].toTensor());
  };
  const at::Tensor x = seeded({3, 4});
  const ForwardFunction compiled = AotAutograd{nop()}(*model, forward, {x});
  model->to(at::kDouble);
  expect_error(ErrorCode::kGuard, {"\"weight\"", "float64", "float32"}, [&] { compiled({x}); });
  model->to(at::kFloat);
  EXPECT_TRUE(at::allclose(compiled({x}).toTensor(), model->forward(x)));
}

}  // namespace
}  // namespace halftone
