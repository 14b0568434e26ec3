// Guards of a compiled function: the same autocast, and inputs that were two are two.
#include <ATen/autocast_mode.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>

#include "halftone/autograd/aot_autograd.h"
#include "halftone/compile/compile_module.h"
#include "training/steps.h"

namespace halftone {
namespace {

constexpr std::array kBackends = {"eager", "aot_eager", "ts", "aot_ts", "halftone"};

/// Autocast as a user switches it on for a part of the program.
class Autocast {
 public:
  explicit Autocast(bool on, at::ScalarType dtype = at::kBFloat16) {
    at::autocast::set_autocast_enabled(at::kCPU, on);
    at::autocast::set_autocast_dtype(at::kCPU, dtype);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, before_);
    at::autocast::set_autocast_dtype(at::kCPU, dtype_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const bool before_ = at::autocast::is_autocast_enabled(at::kCPU);
  const at::ScalarType dtype_ = at::autocast::get_autocast_dtype(at::kCPU);
};

torch::nn::Linear small_linear() {
  torch::manual_seed(3);
  return torch::nn::Linear(16, 16);
}

ForwardFunction forward_of(const torch::nn::Linear& model) {
  return [impl = model.ptr()](const std::vector<c10::IValue>& args) -> c10::IValue {
    return impl->forward(args[0].toTensor()).relu();
  };
}

CompileModuleOptions with(const std::string& backend) {
  CompileModuleOptions options;
  options.backend = backend;
  return options;
}

void expect_as_eager(const CompiledModule& compiled, const ForwardFunction& eager, const at::Tensor& x) {
  const at::Tensor found = compiled({x}).toTensor(), expected = eager({x}).toTensor();
  EXPECT_EQ(found.scalar_type(), expected.scalar_type());
  EXPECT_TRUE(at::allclose(found.to(at::kFloat), expected.to(at::kFloat), 1e-2, 1e-2));
}

TEST(Guards, AutocastNeedsAGraphOfItsOwn) {
  for (const std::string backend : kBackends) {
    for (const bool gradients : {false, true}) {
      for (const bool first : {false, true}) {
        SCOPED_TRACE(backend + (gradients ? ", gradients" : "") +
                     (first ? ", on then off" : ", off then on"));
        const at::AutoGradMode mode(gradients);
        const torch::nn::Linear model = small_linear();
        const CompiledModule compiled = compile(model.ptr(), forward_of(model), with(backend));
        const at::Tensor x = seeded({5, 16});
        for (const bool on : {first, !first, first}) {
          const Autocast autocast(on);
          expect_as_eager(compiled, forward_of(model), x);
        }
        EXPECT_EQ(compiled.counters().compilations, 2);
      }
    }
  }
}

TEST(Guards, AnotherAutocastTypeIsAnotherGraph) {
  const torch::nn::Linear model = small_linear();
  const CompiledModule compiled = compile(model.ptr(), forward_of(model), with("aot_eager"));
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    const Autocast autocast(true, dtype);
    EXPECT_EQ(compiled({seeded({5, 16})}).toTensor().scalar_type(), dtype);
  }
}

TEST(Guards, GradientsUnderAutocastReachTheWeights) {
  const torch::nn::Linear model = small_linear();
  const ForwardFunction eager = forward_of(model);
  const CompiledModule compiled = compile(model.ptr(), eager, with("aot_eager"));
  const at::Tensor x = seeded({5, 16});
  const auto gradient = [&](const auto& forward) {
    at::Tensor loss;
    {
      const Autocast autocast(true);
      eager({x});  // leaves the converted weight in autocast's cache
      loss = forward({x}).toTensor().to(at::kFloat).sum();
    }
    return torch::autograd::grad({loss}, {model->weight})[0];
  };
  EXPECT_TRUE(at::allclose(gradient(compiled), gradient(eager), 1e-2, 1e-2));
  {
    const at::NoGradGuard no_grad;
    model->weight.mul_(2);
  }
  EXPECT_TRUE(at::allclose(gradient(compiled), gradient(eager), 1e-2, 1e-2));
  const Autocast autocast(true);
  expect_as_eager(compiled, eager, x);
}

TEST(Guards, AotAutogradRefusesAnotherAutocast) {
  torch::nn::Linear model = small_linear();
  AotOptions options;
  options.fw_compiler = nop_compiler();
  const at::Tensor x = seeded({5, 16});
  const ForwardFunction off = AotAutograd(options)(*model, forward_of(model), {x});
  const at::Tensor loss = off({x}).toTensor().sum();
  {
    const Autocast autocast(true);
    expect_error(ErrorCode::kGuard, {"autocast is on (bfloat16)", "it was off"}, [&] { off({x}); });
    loss.backward();  // its graph is what it was
    EXPECT_EQ(model->weight.grad().scalar_type(), at::kFloat);
    const ForwardFunction on = AotAutograd(options)(*model, forward_of(model), {x});
    EXPECT_EQ(on({x}).toTensor().scalar_type(), at::kBFloat16);
    const Autocast inner(false);
    expect_error(ErrorCode::kGuard, {"autocast is off", "on (bfloat16)"}, [&] { on({x}); });
  }
}

TEST(Guards, SessionsComputeWhatTheGraphSays) {
  torch::nn::Linear model = small_linear();
  const at::Tensor x = seeded({5, 16});
  Session session(capture(*model, std::tuple(x)));
  const at::Tensor expected = session({x}).toTensor();
  const Autocast autocast(true);
  EXPECT_TRUE(at::equal(session({x}).toTensor(), expected));
}

TEST(Guards, OneTensorTwiceIsTwoInputs) {
  const ForwardFunction function = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    return args[0].toTensor().exp() - args[1].toTensor() * 2;
  };
  const at::NoGradGuard no_grad;
  const at::Tensor x = seeded({3, 4}), a = seeded({3, 4}, 2), b = seeded({3, 4}, 3);
  for (const std::string backend : kBackends) {
    SCOPED_TRACE(backend);
    const CompiledModule compiled = compile(function, with(backend));
    expect_same(compiled({x, x}), function({x, x}), 1e-6, "one tensor");
    expect_same(compiled({a, b}), function({a, b}), 1e-6, "two tensors");
    expect_same(compiled({a, a.detach()}), function({a, a}), 1e-6, "two handles");
  }
}

TEST(Guards, TwoHandlesOfOneMemoryAreTwoInputsOfAJointGraph) {
  torch::nn::Module nothing;
  const ForwardFunction function = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    return args[0].toTensor().detach() * 3 - args[1].toTensor().detach() + args[2].toTensor();
  };
  AotOptions options;
  options.fw_compiler = nop_compiler();
  const at::Tensor x = seeded({4}), w = seeded({4}, 2).requires_grad_();
  const ForwardFunction compiled = AotAutograd{options}(nothing, function, {x, x.detach(), w});
  const at::Tensor a = seeded({4}, 3), b = seeded({4}, 4);
  expect_same(compiled({a, b, w}), function({a, b, w}), 0);
}

TEST(Guards, AttentionOfEqualValuesIsNotSelfAttention) {
  torch::manual_seed(6);
  torch::nn::MultiheadAttention model(torch::nn::MultiheadAttentionOptions(8, 2));
  model->eval();
  const ForwardFunction forward = [impl = model.ptr()](const std::vector<c10::IValue>& args) -> c10::IValue {
    return std::get<0>(impl->forward(args[0].toTensor(), args[1].toTensor(), args[2].toTensor()));
  };
  const at::Tensor q = seeded({4, 2, 8}), k = seeded({4, 2, 8}, 2);
  for (const std::string backend : {"halftone", "aot_eager"}) {
    for (const bool gradients : {false, true}) {
      SCOPED_TRACE(backend + (gradients ? ", gradients" : ""));
      const at::AutoGradMode mode(gradients);
      const CompiledModule compiled = compile(model.ptr(), forward, with(backend));
      const std::vector<std::vector<c10::IValue>> calls = {
          {q, q.clone(), q.clone()}, {q, k, k.clone()}, {q, q, q}, {q, k, k}};
      for (const auto& call : calls) expect_same(compiled(call), forward(call), 1e-5);
    }
  }
}

TEST(Guards, ResultsKeepTheModelsContainers) {
  const ForwardFunction function = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    const at::Tensor& x = args[0].toTensor();
    c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
    dict.insert("list", std::vector<at::Tensor>{x + 1});
    return std::tuple(std::vector<at::Tensor>{x * 2, x * 3}, dict, c10::IValue(), std::tuple(x.exp()));
  };
  for (const std::string backend : kBackends) {
    for (const bool gradients : {false, true}) {
      SCOPED_TRACE(backend + (gradients ? ", gradients" : ""));
      const at::AutoGradMode mode(gradients);
      const at::Tensor x = seeded({3}).requires_grad_(gradients);
      const c10::IValue result = compile(function, with(backend))({x});
      const auto& items = result.toTupleRef().elements();
      EXPECT_EQ(items[0].toTensorVector().size(), 2U);
      EXPECT_EQ(items[1].toGenericDict().at("list").toTensorVector().size(), 1U);
      EXPECT_TRUE(items[2].isNone());
      EXPECT_TRUE(items[3].isTuple());
    }
  }
  const ForwardFunction chunks = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    return args[0].toTensor().chunk(2);
  };
  const at::NoGradGuard no_grad;
  EXPECT_EQ(compile(chunks)({seeded({4})}).toTensorVector().size(), 2U);
  EXPECT_EQ((Session(capture(chunks, {seeded({4})})))({seeded({4})}).toTensorVector().size(), 2U);
}

}  // namespace
}  // namespace halftone
