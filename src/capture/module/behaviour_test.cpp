// Refusals and messages of captures; a capture leaves nothing behind.
#include <ATen/autocast_mode.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <fstream>
#include <thread>

#include "capture/module/test_support.h"
#include "halftone/quant/quantize.h"

// An operator of the user's own that writes and has no pure form.
TORCH_LIBRARY(halftone_capture_test, library) {
  library.def("bump_(Tensor(a!) x, Tensor by) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone_capture_test, CPU, library) {
  library.impl("bump_", [](const at::Tensor& x, const at::Tensor& by) {
    at::Tensor target = x;
    target.add_(by);
    return by * 2;
  });
}

namespace halftone {
namespace {

using ::testing::HasSubstr;

/// Calls what it is given after a layer of its own.
struct AnyModel : torch::nn::Module {
  explicit AnyModel(std::function<at::Tensor(const at::Tensor&)> body) : body_(std::move(body)) {}
  torch::nn::Linear fc{register_module("fc", torch::nn::Linear(4, 4))};
  at::Tensor state{register_buffer("state", at::zeros({4}))};
  at::Tensor forward(const at::Tensor& x) { return body_(fc(x)); }

 private:
  std::function<at::Tensor(const at::Tensor&)> body_;
};

struct Refusal {
  const char* op;
  const char* why;
  std::function<at::Tensor(const at::Tensor&)> body;
};

std::vector<Refusal> refusals() {
  return {
      {"aten::dropout", "random", [](const at::Tensor& x) { return at::dropout(x, 0.5, true); }},
      {"aten::rand_like", "random", [](const at::Tensor& x) { return x + at::rand_like(x); }},
      {"aten::uniform", "random", [](const at::Tensor& x) { return x.clone().uniform_(); }},
      {"aten::randn.generator", "random",
       [](const at::Tensor& x) {
         auto generator = at::make_generator<at::CPUGeneratorImpl>(1);
         return x + at::randn({4}, generator);
       }},
      {"aten::item", "number", [](const at::Tensor& x) { return x * x.sum().item(); }},
      {"aten::is_nonzero", "number",
       [](const at::Tensor& x) { return x.sum().gt(100).is_nonzero() ? x : x + 1; }},
      {"aten::equal", "number", [](const at::Tensor& x) { return at::equal(x, x + 1) ? x : x * 2; }},
      {"aten::nonzero", "size", [](const at::Tensor& x) { return x.gt(0).nonzero(); }},
      {"aten::masked_select", "size", [](const at::Tensor& x) { return x.masked_select(x > 0); }},
      {"aten::index.Tensor", "size", [](const at::Tensor& x) { return x.index({x > 0}); }},
      {"aten::to.device", "device", [](const at::Tensor& x) { return x.to(c10::kMeta, x.scalar_type()); }},
  };
}

TEST(CaptureRefuses, WhatWouldDifferInTheNextCall) {
  for (const Refusal& refusal : refusals()) {
    SCOPED_TRACE(refusal.op);
    AnyModel model(refusal.body);
    const ModuleBytes before = ModuleBytes::of(model);
    expect_error(ErrorCode::kUnsupported, {refusal.op, refusal.why, "layer \"fc\"", "CaptureOptions::allow"},
                 [&] {
                   capture(model, std::tuple(seeded({3, 4})));
                 });
    EXPECT_TRUE(ModuleBytes::of(model) == before);
    EXPECT_TRUE(nothing_is_registered());
  }
}

TEST(CaptureRefuses, UnlessAllowed) {
  for (const Refusal& refusal : refusals()) {
    if (std::string_view(refusal.why) == "device") continue;  // a tensor elsewhere cannot be a constant here
    SCOPED_TRACE(refusal.op);
    AnyModel model(refusal.body);
    const ModuleBytes before = ModuleBytes::of(model);
    CaptureOptions options;
    options.allow = {refusal.op};
    const at::Tensor x = seeded({3, 4});
    const auto graph = capture(model, std::tuple(x), options);
    EXPECT_TRUE(ModuleBytes::of(model) == before);
    ASSERT_EQ(graph->notes.size(), 1U);
    EXPECT_THAT(graph->notes[0], HasSubstr(refusal.op));
    EXPECT_THAT(graph->notes[0], HasSubstr("layer \"fc\""));
    const at::Tensor once = (Session(graph))({x}).toTensor();
    EXPECT_TRUE(at::equal((Session(graph))({x}).toTensor(), once));
  }
  torch::nn::Linear model(2, 2);
  CaptureOptions options;
  options.allow = {"aten::drop_out"};
  expect_error(ErrorCode::kInvalidArgument, {"aten::drop_out"}, [&] {
    capture(*model, std::tuple(seeded({1, 2})), options);
  });
}

TEST(CaptureRefuses, WritesPastTheDispatcher) {
  AnyModel temporary([](const at::Tensor& x) {
    at::Tensor y = x * 2;
    y.data_ptr<float>()[0] = 7;
    return y + 1;
  });
  expect_error(ErrorCode::kUnsupported, {"data_ptr"}, [&] {
    capture(temporary, std::tuple(seeded({3, 4})));
  });
  AnyModel buffer([&buffer](const at::Tensor& x) {
    buffer.state.data_ptr<float>()[0] = 7;
    return x + buffer.state;
  });
  const ModuleBytes before = ModuleBytes::of(buffer);
  expect_error(ErrorCode::kUnsupported, {"data_ptr"}, [&] { capture(buffer, std::tuple(seeded({3, 4}))); });
  EXPECT_TRUE(ModuleBytes::of(buffer) == before);
}

TEST(CaptureRefuses, ReadsPastTheDispatcher) {
  AnyModel number([](const at::Tensor& x) { return x * x.data_ptr<float>()[0]; });
  expect_error(ErrorCode::kUnsupported, {"past torch", "aten::mul"}, [&] {
    capture(number, std::tuple(seeded({3, 4})));
  });
  AnyModel table([](const at::Tensor& x) {
    return x + at::tensor(std::vector<float>(4, x.accessor<float, 2>()[1][1]));
  });
  expect_error(ErrorCode::kUnsupported, {"past torch", "aten::add.Tensor", "layer"}, [&] {
    capture(table, std::tuple(seeded({3, 4})));
  });
  AnyModel threaded([](const at::Tensor& x) {
    at::Tensor y;
    std::thread([&] { y = x * 2; }).join();
    return y + 1;
  });
  expect_error(ErrorCode::kUnsupported, {"past torch"}, [&] {
    capture(threaded, std::tuple(seeded({3, 4})));
  });
  int calls = 0;
  AnyModel counting([&](const at::Tensor& x) { return x + ++calls; });
  expect_error(ErrorCode::kUnsupported, {"does something else", "aten::add.Scalar"}, [&] {
    capture(counting, std::tuple(seeded({3, 4})));
  });
}

TEST(CaptureRefuses, MemoryThatTwoInputsShare) {
  const auto writes = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    at::Tensor x = args[0].toTensor();
    x.add_(1);
    return x + args[1].toTensor();
  };
  const at::Tensor whole = seeded({4, 4});
  expect_error(ErrorCode::kUnsupported, {"shares its memory"}, [&] {
    capture(writes, {whole, whole.slice(0, 1, 4).slice(0, 0, 1)});
  });
  EXPECT_NO_THROW(capture(writes, {seeded({4, 4}), seeded({4, 4}, 2)}));
}

TEST(CaptureWrites, OperatorsWithoutAPureFormWriteToACopy) {
  AnyModel model([&model](const at::Tensor& x) {
    const auto op = c10::Dispatcher::singleton()
                        .findSchemaOrThrow("halftone_capture_test::bump_", "")
                        .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
    at::Tensor y = x * 1;
    const at::Tensor row = y.select(0, 1);
    const at::Tensor twice = op.call(y.slice(0, 0, 2), model.state + 3);
    op.call(model.state, row);
    return y + twice + row;
  });
  const ModuleBytes before = ModuleBytes::of(model);
  const auto graph = capture(model, std::tuple(seeded({3, 4})));
  EXPECT_TRUE(ModuleBytes::of(model) == before);
  Session session(graph);
  const at::NoGradGuard no_grad;
  for (uint64_t step = 0; step < 3; ++step) {
    const at::Tensor x = seeded({3, 4}, step);
    expect_same(session({x}), model.forward(x), 0);
    EXPECT_TRUE(at::equal(session.state("state"), model.state));
  }
}

TEST(CaptureRefuses, NumbersOfConstantsAreNoData) {
  AnyModel model([](const at::Tensor& x) { return x * at::tensor(std::vector<float>{2, 3}).sum().item(); });
  const auto graph = capture(model, std::tuple(seeded({3, 4})));
  EXPECT_THAT(graph->notes, ::testing::IsEmpty());
}

TEST(CaptureNotes, WhatCouldNotBeChecked) {
  const ForwardFunction picky = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    const at::Tensor& x = args[0].toTensor();
    if (x.const_data_ptr<float>()[0] != 1) throw std::runtime_error("begins with another number");
    return x * 2;
  };
  const auto graph = capture(picky, {at::arange(1, 5, at::kFloat)});
  ASSERT_EQ(graph->notes.size(), 1U);
  EXPECT_THAT(graph->notes[0], HasSubstr("not checked with other data"));
  EXPECT_THAT(graph->notes[0], HasSubstr("begins with another number"));
}

TEST(CaptureNotes, DimensionsThatStayFixed) {
  AnyModel model([](const at::Tensor& x) { return x.view({-1, 4}); });
  CaptureOptions options;
  options.find_dynamic = true;
  const auto graph = capture(model, std::tuple(seeded({3, 4})), options);
  EXPECT_THAT(graph->notes, ::testing::Contains(HasSubstr("dimension 1 of input0 stays fixed")));
}

TEST(CaptureRefuses, ErrorsOfTheModelItself) {
  AnyModel model([](const at::Tensor& x) { return x.view({7, 7}); });
  expect_error(ErrorCode::kInvalidArgument,
               {"AnyModel", "aten::view", "layer \"fc\"", "invalid for input of size"}, [&] {
                 capture(model, std::tuple(seeded({3, 4})));
               });
  EXPECT_TRUE(nothing_is_registered());
  CaptureOptions options;
  options.input_names = {"a", "b"};
  expect_error(ErrorCode::kInvalidArgument, {"input_names"}, [&] {
    capture(*model.fc, std::tuple(seeded({3, 4})), options);
  });
}

TEST(CaptureModes, AutocastAndDispatchModesAreRefused) {
  torch::nn::Linear model(4, 4);
  at::autocast::set_autocast_enabled(c10::kCPU, true);
  expect_error(ErrorCode::kUnsupported, {"autocast"}, [&] { capture(*model, std::tuple(seeded({3, 4}))); });
  at::autocast::set_autocast_enabled(c10::kCPU, false);
  {
    const c10::impl::IncludeDispatchKeyGuard mode(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
    const at::Tensor x = [] {
      const c10::impl::ExcludeDispatchKeyGuard plain(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
      return seeded({3, 4});
    }();
    const c10::impl::ExcludeDispatchKeyGuard plain(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
    expect_error(ErrorCode::kUnsupported, {"dispatch mode"}, [&] { capture(*model, std::tuple(x)); });
  }
  EXPECT_NO_THROW(capture(*model, std::tuple(seeded({3, 4}))));
}

TEST(CaptureModes, AutocastInsideTheModelIsRefused) {
  AnyModel model([](const at::Tensor& x) {
    at::autocast::set_autocast_enabled(c10::kCPU, true);
    const at::Tensor y = at::mm(x, x.t());
    at::autocast::set_autocast_enabled(c10::kCPU, false);
    return y;
  });
  expect_error(ErrorCode::kUnsupported, {"autocast", "aten::"}, [&] {
    capture(model, std::tuple(seeded({3, 4})));
  });
  at::autocast::set_autocast_enabled(c10::kCPU, false);
}

TEST(CaptureModes, InferenceModeAndGradientsOfTheCaller) {
  torch::nn::Sequential model(torch::nn::Linear(4, 4), torch::nn::ReLU());
  const at::Tensor x = seeded({3, 4});
  const at::Tensor expected = model->forward(x).detach();
  {
    const c10::InferenceMode inference;
    EXPECT_TRUE(at::equal((Session(capture(*model, std::tuple(x))))({x}).toTensor(), expected));
  }
  model->forward(x).sum().backward();
  const ModuleBytes before = ModuleBytes::of(*model);
  const auto graph = capture(*model, std::tuple(x));
  EXPECT_TRUE(ModuleBytes::of(*model) == before);
  EXPECT_TRUE(graph->tensor("0.weight").requires_grad());
}

TEST(CaptureModes, CaptureInsideACaptureIsRefused) {
  torch::nn::Linear inner(4, 4);
  AnyModel model([&](const at::Tensor& x) {
    capture(*inner, std::tuple(x));
    return x;
  });
  expect_error(ErrorCode::kState, {"inside a capture"}, [&] { capture(model, std::tuple(seeded({3, 4}))); });
}

TEST(CaptureQuantized, GivesPlainTensorsAndOurOperators) {
  torch::manual_seed(3);
  for (const char* scheme : {"int8wo", "int8dq", "int4wo", "fp8wo", "bf16wo"}) {
    SCOPED_TRACE(scheme);
    torch::nn::Sequential model(torch::nn::Linear(64, 32), torch::nn::ReLU(), torch::nn::Linear(32, 32));
    model->eval();
    quantize_(*model, scheme);
    const at::Tensor x = seeded({3, 64});
    const auto graph = capture(*model, std::tuple(x));
    size_t ours = 0;
    for (const auto& node : graph->graph().nodes()) {
      if (!node->target().starts_with("halftone::")) continue;
      ++ours;
      EXPECT_EQ(node->source().layer, ours == 1 ? "0" : "2");
    }
    EXPECT_EQ(ours, 2U);
    EXPECT_EQ(graph->tensors()->contains("0.weight:scale"), std::string_view(scheme) != "bf16wo");
    EXPECT_TRUE(graph->tensors()->contains("2.weight:weight"));
    for (const auto& [name, tensor] : *graph->tensors()) EXPECT_TRUE(tensor.has_storage()) << name;
    const at::NoGradGuard no_grad;
    EXPECT_TRUE(at::equal((Session(graph))({x}).toTensor(), model->forward(x)));
  }
}

TEST(CaptureQuantized, GraphsOfCapturedModulesCanBeQuantized) {
  torch::nn::Sequential model(torch::nn::Linear(64, 32), torch::nn::ReLU(), torch::nn::Linear(32, 32));
  const auto graph = capture(*model, std::tuple(seeded({3, 5, 64})));
  EXPECT_EQ(quantize_(*graph, "int8wo").count(LayerReport::Outcome::kQuantized), 2U);
}

int64_t resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "VmRSS:") {
      int64_t number = 0;
      status >> number;
      return number;
    }
  }
  return 0;
}

TEST(CaptureLeavesNothing, AfterAThousandCaptures) {
  AnyModel model([&model](const at::Tensor& x) {
    model.state.add_(x.select(0, 0));
    return x + model.state;
  });
  const at::Tensor x = seeded({64, 4});
  CaptureOptions options;
  options.check = false;
  for (int i = 0; i < 200; ++i) capture(model, std::tuple(x), options);
  const int64_t before = resident_kilobytes();
  for (int i = 0; i < 1000; ++i) capture(model, std::tuple(x), options);
  EXPECT_LT(resident_kilobytes() - before, 2048) << "kilobytes more after a thousand captures";
  EXPECT_TRUE(nothing_is_registered());
}

TEST(CaptureThreads, FourAtOnce) {
  const auto work = [](uint64_t seed) {
    torch::nn::Sequential model(torch::nn::Linear(8, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2));
    const at::Tensor x = seeded({5, 8}, seed);
    const at::NoGradGuard no_grad;
    for (int i = 0; i < 25; ++i) {
      const auto graph = capture(*model, std::tuple(x));
      if (!at::equal((Session(graph))({x}).toTensor(), model->forward(x))) return false;
      if (graph->graph().nodes().size() != 5) return false;
    }
    return true;
  };
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (uint64_t i = 0; i < 4; ++i) threads.emplace_back([&, i] { right += work(i) ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
  EXPECT_TRUE(nothing_is_registered());
}

TEST(CaptureThreads, OneModuleWithStateByFour) {
  AnyModel model([&model](const at::Tensor& x) {
    model.state.add_(x.select(0, 0));
    return x + model.state;
  });
  const ModuleBytes before = ModuleBytes::of(model);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 25; ++k) capture(model, std::tuple(seeded({3, 4})));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(ModuleBytes::of(model) == before);
}

}  // namespace
}  // namespace halftone
