#include "graph/run/interpreter.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"
#include "halftone/graph/limits.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

std::vector<c10::IValue> run_text(std::string_view text, std::vector<c10::IValue> inputs) {
  return Interpreter(parse_graph(text)).run(std::move(inputs));
}

TEST(Interpreter, RunsOperatorsWithDefaultsListsAndOptionalOperands) {
  const at::Tensor x = at::randn({2, 6}), w = at::randn({4, 6});
  const auto outputs = run_text(R"(
graph(%x: user "x" f32[2, 6], %w: user "w" f32[4, 6]) {
  %a: f32[2, 4] = aten::linear(%x, %w)
  %parts: list = aten::split.Tensor(%a, 2, 1)
  %l: f32[2, 2], %r: f32[2, 2] = builtin::unpack(%parts)
  %c: f32[2, 4] = aten::cat([%r, %l], 1)
  %m: f32[2, 4], %i: i64[2, 4] = aten::sort(%c, 1, true)
  return %m, %i, 3, None
})",
                                {x, w});
  const auto parts = at::linear(x, w).split(2, 1);
  const auto [values, indices] = at::cat({parts[1], parts[0]}, 1).sort(1, true);
  EXPECT_TRUE(outputs[0].toTensor().equal(values));
  EXPECT_TRUE(outputs[1].toTensor().equal(indices));
  EXPECT_EQ(outputs[2].toInt(), 3);
  EXPECT_TRUE(outputs[3].isNone());
}

TEST(Interpreter, TakesListsWithHolesAndSymbolicSizes) {
  const at::Tensor x = at::arange(12.).view({3, 4}), i = at::tensor({2, 0});
  const auto outputs = run_text(R"(
graph(%x: user "x" f32[3, 4], %i: user "i" i64[2]) {
  %y: f32[3, 2] = aten::index.Tensor(%x, [None, %i])
  %n: int = aten::sym_size.int(%y, 1)
  %m: int = sym::mul(%n, 3)
  %z: f32[6] = aten::reshape(%y, [%m])
  return %z
})",
                                {x, i});
  EXPECT_TRUE(outputs[0].toTensor().equal(x.index_select(1, i).reshape({6})));
}

TEST(Interpreter, NumbersStandForTensorsWithoutRaisingTheDtype) {
  const at::Tensor x = at::ones({3}, at::kBFloat16);
  const auto outputs = run_text(R"(
graph(%x: user "x" bf16[3]) {
  %n: int = aten::sym_size.int(%x, 0)
  %a: bf16[3] = aten::mul.Tensor(%x, 2.5)
  %b: bf16[3] = aten::add.Tensor(%a, %n)
  return %b
})",
                                {x});
  EXPECT_TRUE(outputs[0].toTensor().equal(x * 2.5 + 3));
}

TEST(Interpreter, FreesEachValueAfterItsLastUse) {
  const auto graph = std::shared_ptr<const Graph>(parse_graph(R"(
graph(%x: user "x" f32[4]) {
  %a: f32[4] = aten::relu(%x)
  %b: f32[4] = aten::neg(%a)
  %c: f32[4] = aten::abs(%b)
  return %c
})"));
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages;
  std::vector<size_t> alive;
  const NodeHook hook = [&](const Node&, const std::vector<c10::IValue>& outputs, double) {
    storages.emplace_back(outputs[0].toTensor().storage().getWeakStorageImpl());
    size_t count = 0;
    for (const auto& storage : storages) count += storage.expired() ? 0 : 1;
    alive.push_back(count);
  };
  const auto outputs = Interpreter(graph).run({at::randn({4})}, &hook);
  // The hook holds the newest output; the one before it is dead as soon as it was consumed.
  EXPECT_EQ(alive, (std::vector<size_t>{1, 1, 1}));
}

TEST(Interpreter, CallsTheHookAtEachNodeInOrder) {
  std::vector<std::string> targets;
  const NodeHook hook = [&](const Node& node, const std::vector<c10::IValue>&, double seconds) {
    targets.push_back(node.target());
    EXPECT_GE(seconds, 0);
  };
  Interpreter(parse_graph("graph(%x: user \"x\" f32[2]) { %a: f32[2] = aten::relu(%x)\n %b: f32[2] = "
                          "aten::neg(%a)\n return %b }"))
      .run({at::randn({2})}, &hook);
  EXPECT_EQ(targets, (std::vector<std::string>{"aten::relu", "aten::neg"}));
}

TEST(Interpreter, ErrorsNameNodeAndLayer) {
  const std::string text =
      "graph(%x: user \"x\" f32[2]) {\n %a: f32[2] = aten::view(%x, [3])  @ \"encoder.0\" \"Reshape\"\n "
      "return %a\n}";
  const std::string message =
      message_of(ErrorCode::kInvalidArgument, [&] { run_text(text, {at::randn({2})}); });
  EXPECT_THAT(message, HasSubstr("aten::view (%a) in layer \"encoder.0\""));
  EXPECT_THAT(message, HasSubstr("invalid for input of size 2"));
}

TEST(Interpreter, RunsWhileLoops) {
  const auto outputs = run_text(R"(
graph(%x: user "x" f32[], %step: user "step" f32[]) {
  %y: f32[] = builtin::while_loop(graph(%u: user "u" f32[], %s: user "s" f32[]) {
      %c: bool[] = aten::lt.Scalar(%u, 10)
      return %c
    }, graph(%u: user "u" f32[], %s: user "s" f32[]) {
      %v: f32[] = aten::add.Tensor(%u, %s)
      return %v
    }, [%x], [%step])
  return %y
})",
                                {at::scalar_tensor(1.), at::scalar_tensor(4.)});
  EXPECT_EQ(outputs[0].toTensor().item<float>(), 13);
}

/// The step limit of the process, restored at the end.
struct StepLimit {
  explicit StepLimit(int64_t steps) { set_max_steps(steps); }
  ~StepLimit() { set_max_steps(kDefaultMaxSteps); }
};

TEST(Interpreter, ALoopThatDoesNotEndIsStopped) {
  const StepLimit limit(100);
  const std::string text = R"(
graph(%x: user "x" f32[], %step: user "step" f32[]) {
  %y: f32[] = builtin::while_loop(graph(%u: user "u" f32[], %s: user "s" f32[]) {
      %c: bool[] = aten::lt.Scalar(%u, 100)
      return %c
    }, graph(%u: user "u" f32[], %s: user "s" f32[]) {
      %v: f32[] = aten::add.Tensor(%u, %s)
      return %v
    }, [%x], [%step])  @ "decoder" "Loop"
  return %y
})";
  const auto run = [&](float step) {
    return run_text(text, {at::scalar_tensor(0.), at::scalar_tensor(step)});
  };
  EXPECT_EQ(run(1)[0].toTensor().item<float>(), 100) << "as many steps as are allowed";
  const std::string message = message_of(ErrorCode::kUnsupported, [&] { run(0.5); });
  EXPECT_THAT(message, HasSubstr("builtin::while_loop (%y) in layer \"decoder\""));
  EXPECT_THAT(message, HasSubstr("more than 100 steps"));
  message_of(ErrorCode::kUnsupported, [&] { run(0); });
  EXPECT_EQ(run(1)[0].toTensor().item<float>(), 100) << "each call has its own steps";
}

TEST(Interpreter, LoopsInLoopsShareTheirSteps) {
  const StepLimit limit(100);
  const std::string text = R"(
graph(%xs: user "xs" f32[s0, s1, 3]) {
  %m: f32[s0, s1, 3] = builtin::map(graph(%x: user "x" f32[s1, 3]) {
      %p: f32[s1, 3] = builtin::map(graph(%z: user "z" f32[3]) {
          %n: f32[3] = aten::neg(%z)
          return %n
        }, [%x], [])
      return %p
    }, [%xs], [])
  return %m
})";
  EXPECT_EQ(run_text(text, {at::ones({9, 10, 3})})[0].toTensor().size(0), 9);
  message_of(ErrorCode::kUnsupported, [&] { run_text(text, {at::ones({10, 10, 3})}); });
  message_of(ErrorCode::kUnsupported, [&] { run_text(text, {at::ones({1, 1, 3}).expand({1000000, 1, 3})}); });
}

TEST(Interpreter, RunsScanAndMap) {
  const at::Tensor xs = at::randn({5, 3}), zero = at::zeros({3});
  const auto outputs = run_text(R"(
graph(%xs: user "xs" f32[5, 3], %init: user "init" f32[3]) {
  %last: f32[3], %all: f32[5, 3] = builtin::scan(graph(%c: user "c" f32[3], %x: user "x" f32[3]) {
      %n: f32[3] = aten::add.Tensor(%c, %x)
      return %n, %n
    }, [%init], [%xs], [])
  %m: f32[5, 3] = builtin::map(graph(%x: user "x" f32[3], %k: user "k" f32[3]) {
      %p: f32[3] = aten::sub.Tensor(%x, %k)
      return %p
    }, [%xs], [%last])
  return %last, %all, %m
})",
                                {xs, zero});
  EXPECT_TRUE(outputs[1].toTensor().allclose(xs.cumsum(0)));
  EXPECT_TRUE(outputs[0].toTensor().allclose(xs.sum(0)));
  EXPECT_TRUE(outputs[2].toTensor().allclose(xs - xs.sum(0)));
}

TEST(Interpreter, RefusesAWrongNumberOfInputs) {
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                         [] { run_text("graph(%x: user \"x\" f32[2]) { return %x }", {}); }),
              HasSubstr("takes 1 input, not 0"));
}

}  // namespace
}  // namespace halftone
