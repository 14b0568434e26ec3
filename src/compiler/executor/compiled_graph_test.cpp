#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "graph/test_support.h"
#include "halftone/compile/compile.h"
#include "halftone/quant/weight_format.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

std::vector<c10::IValue> interpreted(const std::shared_ptr<GraphModule>& module,
                                     const std::vector<c10::IValue>& inputs) {
  return Session(module).run(inputs);
}

/// Runs compiled and interpreted, twice with the same memory, and compares all results.
void expect_same(const std::shared_ptr<GraphModule>& module, const std::vector<c10::IValue>& inputs,
                 double tolerance = 1e-5) {
  const auto compiled = compile(module);
  const auto expected = interpreted(module, inputs);
  for (int round = 0; round < 2; ++round) {
    const auto found = compiled->run(inputs);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      if (!expected[i].isTensor()) {
        EXPECT_EQ(found[i], expected[i]);
        continue;
      }
      EXPECT_EQ(found[i].toTensor().scalar_type(), expected[i].toTensor().scalar_type());
      EXPECT_TRUE(
          at::allclose(found[i].toTensor(), expected[i].toTensor(), tolerance, tolerance, /*equal_nan=*/true))
          << "result " << i << "\n"
          << found[i].toTensor() << expected[i].toTensor();
    }
  }
}

std::shared_ptr<GraphModule> mlp() {
  return module_from_text(R"(
graph(%w1: parameter "up.weight" f32[48, 20], %b1: parameter "up.bias" f32[48], %w2: parameter "down.weight" f32[20, 48],
      %g: parameter "norm.weight" f32[20], %x: user "x" f32[s0, s1, 20]) {
  %a: f32[s0, s1, 48] = aten::linear(%x, %w1, %b1)  @ "up" "Linear"
  %h: f32[s0, s1, 48] = aten::gelu(%a)  @ "act" "GELU"
  %c: f32[s0, s1, 20] = aten::linear(%h, %w2, None)  @ "down" "Linear"
  %d: f32[s0, s1, 20] = aten::add.Tensor(%c, %x)
  %y: f32[s0, s1, 20] = aten::layer_norm(%d, [20], %g, None, 1e-05, false)  @ "norm" "LayerNorm"
  return %y
})",
                          {{"up.weight", at::randn({48, 20})},
                           {"up.bias", at::randn({48})},
                           {"down.weight", at::randn({20, 48})},
                           {"norm.weight", at::rand({20})}});
}

TEST(CompiledGraph, RunsAFeedForwardBlockNatively) {
  const auto module = mlp();
  for (const auto& [batch, tokens] : {std::pair{1, 1}, {2, 7}, {3, 64}}) {
    expect_same(module, {at::randn({batch, tokens, 20})});
  }
  const PlanReport report = compile(module)->report({at::randn({2, 3, 20})});
  EXPECT_EQ(report.interpreted, "");
  EXPECT_THAT(report.left_to_aten, ::testing::IsEmpty());
  EXPECT_EQ(report.steps.size(), 3u);  // two linears with their epilogues, and the norm
}

TEST(CompiledGraph, Bfloat16WeightsRunNativelyWithTheirEpilogues) {
  const auto rounded = [](at::IntArrayRef sizes) {
    return quantize_weight(at::randn(sizes), "bf16wo", "weight").part("weight");
  };
  const auto module = module_from_text(R"(
graph(%t: parameter "words" bf16[9, 20], %w1: parameter "up.weight" bf16[48, 20], %b1: parameter "up.bias" f32[48],
      %w2: parameter "down.weight" bf16[20, 48], %ids: user "ids" i64[s0, s1]) {
  %x: f32[s0, s1, 20] = halftone::bf16_embedding(%ids, %t)  @ "words" "Embedding"
  %a: f32[s0, s1, 48] = halftone::bf16_linear(%x, %w1, %b1)  @ "up" "Linear"
  %h: f32[s0, s1, 48] = aten::gelu(%a)  @ "act" "GELU"
  %c: f32[s0, s1, 20] = halftone::bf16_linear(%h, %w2)  @ "down" "Linear"
  %y: f32[s0, s1, 20] = aten::add.Tensor(%c, %x)
  return %y
})",
                                       {{"words", rounded({9, 20})},
                                        {"up.weight", rounded({48, 20})},
                                        {"up.bias", at::randn({48})},
                                        {"down.weight", rounded({20, 48})}});
  for (const auto& [batch, tokens] : {std::pair{1, 1}, {2, 7}, {3, 64}, {0, 4}}) {
    expect_same(module, {at::randint(9, {batch, tokens}, at::kLong)});
  }
  const PlanReport report = compile(module)->report({at::randint(9, {2, 3}, at::kLong)});
  EXPECT_THAT(report.left_to_aten, ::testing::IsEmpty());
  ASSERT_EQ(report.steps.size(), 3u);  // the rows, and two linears with their epilogues
  EXPECT_EQ(report.steps[0].kernel, "embedding_bf16");
  EXPECT_THAT(report.steps[2].kernel, HasSubstr("bf16_linear"));
}

TEST(CompiledGraph, EmptyBatchesNanAndInfinities) {
  const auto module = mlp();
  expect_same(module, {at::randn({0, 5, 20})});
  expect_same(module, {at::randn({2, 0, 20})});
  at::Tensor x = at::randn({2, 3, 20});
  x[0][1][4] = std::numeric_limits<float>::quiet_NaN();
  x[1][2][0] = std::numeric_limits<float>::infinity();
  expect_same(module, {x});
}

TEST(CompiledGraph, InputsOfAnyStrides) {
  const auto module = mlp();
  expect_same(module, {at::randn({20, 4, 3}).permute({2, 1, 0})});
  expect_same(module, {at::randn({3, 4, 40}).slice(2, 0, std::nullopt, 2)});
  expect_same(module, {at::randn({1, 1, 20}).expand({3, 4, 20})});
}

TEST(CompiledGraph, ResultsStayAsTheyAreAfterLaterRuns) {
  const auto compiled = compile(mlp());
  const at::Tensor first = compiled->run({at::ones({2, 3, 20})})[0].toTensor();
  const at::Tensor copy = first.clone();
  for (int i = 0; i < 5; ++i) compiled->run({at::randn({2, 3, 20})});
  EXPECT_TRUE(first.equal(copy));
}

TEST(CompiledGraph, ViewsOfAllKindsCostNothing) {
  expect_same(module_from_text(R"(
graph(%x: user "x" f32[s0, 6]) {
  %n: int(s0) = aten::sym_size.int(%x, 0)
  %m: int(2*s0) = sym::mul(%n, 2)
  %t: f32[6, s0; 1, 6] = aten::t(%x)
  %u: f32[s0, 6] = aten::permute(%t, [1, 0])
  %v: f32[2*s0, 3] = aten::view(%u, [%m, 3])
  %parts: list = aten::split.Tensor(%x, 2, 1)
  %a: f32[s0, 2; 6, 1], %b: f32[s0, 2; 6, 1], %c: f32[s0, 2; 6, 1] = builtin::unpack(%parts)
  %ab: f32[s0, 2] = aten::add.Tensor(%a, %b)
  %r: f32[2*s0] = aten::reshape(%c, [%m])
  %s: f32[s0; 6] = aten::select.int(%x, 1, 5)
  %e: f32[s0, 6] = aten::relu(%x)
  %f: f32[6*s0] = aten::flatten.using_ints(%e)
  return %v, %ab, %r, %s, %f, %n
})"),
              {at::randn({5, 6})});
}

TEST(CompiledGraph, CopiesOfAllStridesAndDtypes) {
  for (const char* type : {"f32", "f64", "bf16", "i64", "u8", "c64"}) {
    const std::string text = R"(
graph(%x: user "x" T[s0, 6, 5]) {
  %t: T[5, s0, 6; 1, 30, 5] = aten::permute(%x, [2, 0, 1])
  %a: T[5, s0, 6] = aten::clone(%t, memory_format=format:contiguous)
  %b: T[s0, 3, 5; 30, 10, 1] = aten::slice.Tensor(%x, 1, 0, 9223372036854775807, 2)
  %c: T[15*s0] = aten::reshape(%b, [-1])
  %d: T[s0, 9, 5] = aten::cat([%x, %b], 1)
  %e: T[s0, 9, 10] = aten::cat([%d, %d], -1)
  return %a, %c, %e
})";
    std::string typed = text;
    for (size_t at = typed.find("T["); at != std::string::npos; at = typed.find("T["))
      typed.replace(at, 1, type);
    const auto module = module_from_text(typed);
    for (const int64_t batch : {0, 1, 4, 700}) {
      const at::Tensor x =
          (at::randn({batch, 6, 5}) * 50).to(module->graph().inputs()[0].value->meta()->dtype);
      expect_same(module, {x}, 0);
      if (batch == 0) continue;
      EXPECT_TRUE(compile(module)->report({x}).left_to_aten.empty()) << type;
    }
  }
}

TEST(CompiledGraph, InPlaceOperatorsWriteWhereTheirViewsRead) {
  expect_same(module_from_text(R"(
graph(%x: user "x" f32[4, 3]) {
  %a: f32[4, 3] = aten::mul.Tensor(%x, 2)
  %row: f32[3] = aten::select.int(%a, 0, 1)
  %z: f32[3] = aten::fill_.Scalar(%row, 7)
  %b: f32[4, 3] = aten::relu(%a)
  %c: f32[4, 3] = aten::add_.Tensor(%b, %x)
  %d: f32[4, 3] = aten::add.Tensor(%b, %a)
  return %d, %z
})"),
              {at::randn({4, 3})});
}

TEST(CompiledGraph, ResultsTakeTheMemoryOfOperandsThatNobodyReadsAgain) {
  // %a dies in %b, %b in %c; %c is read once more after %d.
  const auto module = module_from_text(R"(
graph(%x: user "x" f32[s0, 64], %z: user "z" f32[s0, 64]) {
  %a: f32[s0, 64] = aten::mul.Tensor(%x, %z)
  %b: f32[s0, 64] = aten::relu(%a)
  %c: f32[s0, 64] = aten::softmax.int(%b, -1)
  %d: f32[s0, 64] = aten::silu(%c)
  %e: f32[s0, 64] = aten::add.Tensor(%d, %c)
  %f: f32[s0, 64] = aten::mul.Tensor(%e, %e)
  %y: f32[s0, 64] = aten::relu(%f)
  return %y
})");
  expect_same(module, {at::randn({16, 64}), at::randn({16, 64})});
  const auto report = compile(module)->report({at::randn({16, 64}), at::randn({16, 64})});
  ASSERT_TRUE(report.left_to_aten.empty()) << report.left_to_aten[0];
  EXPECT_EQ(report.arena_bytes, size_t{2} * 16 * 64 * 4);
}

TEST(CompiledGraph, WhatDependsOnSizesOnlyIsMadeOnceAndNotHandedOut) {
  const auto module = module_from_text(R"(
graph(%t: parameter "table" f32[9, 4], %ids: user "ids" i64[s0]) {
  %n: int(s0) = aten::sym_size.int(%ids, 0)
  %r: i64[s0] = aten::arange(%n, dtype=dtype:i64, layout=None, device=device:cpu, pin_memory=false)
  %p: f32[s0, 4] = aten::embedding(%t, %r)
  %e: f32[s0, 4] = aten::embedding(%t, %ids)
  %y: f32[s0, 4] = aten::add.Tensor(%e, %p)
  return %y, %p
})",
                                       {{"table", at::randn({9, 4})}});
  const at::Tensor ids = at::tensor({int64_t{3}, int64_t{8}, int64_t{0}});
  expect_same(module, {ids});
  const auto compiled = compile(module);
  compiled->run({ids})[1].toTensor().fill_(5);
  EXPECT_TRUE(compiled->run({ids})[1].toTensor().equal(module->tensor("table").slice(0, 0, 3)));
}

TEST(CompiledGraph, AnIndexOutOfRangeNamesIndexAndLayer) {
  const auto module = module_from_text(R"(
graph(%t: parameter "table" f32[9, 4], %ids: user "ids" i64[s0]) {
  %e: f32[s0, 4] = aten::embedding(%t, %ids)  @ "words" "Embedding"
  return %e
})",
                                       {{"table", at::randn({9, 4})}});
  const auto compiled = compile(module);
  const std::string message =
      message_of(ErrorCode::kInvalidArgument, [&] { compiled->run({at::tensor({int64_t{9}})}); });
  EXPECT_THAT(message, HasSubstr("words"));
  EXPECT_THAT(message, HasSubstr("index 9"));
}

TEST(CompiledGraph, DataDependentSizesGoToTheInterpreterAndItSaysWhy) {
  const auto module = module_from_text(R"(
graph(%x: user "x" f32[4]) {
  %i: i64[u0, 1; ?] = aten::nonzero(%x)
  %y: f32[4] = aten::relu(%x)
  return %i, %y
})");
  expect_same(module, {at::tensor({0.f, 1.f, 0.f, -2.f})});
  EXPECT_THAT(compile(module)->report({at::ones({4})}).interpreted, HasSubstr("u0"));
}

TEST(CompiledGraph, StateLivesInSessions) {
  const auto module = module_from_text(R"(
graph(%n: buffer "count" f32[1], %x: user "x" f32[s0]) {
  %m: f32[1] = aten::add.Tensor(%n, 1)
  %y: f32[s0] = aten::mul.Tensor(%x, %m)
  return buffer_mutation "count" %m, %y
})",
                                       {{"count", at::zeros({1})}});
  const auto compiled = compile(module);
  EXPECT_THAT(message_of(ErrorCode::kState, [&] { compiled->run({at::ones({2})}); }), HasSubstr("Session"));
  Session first(module, compiled), second(module, compiled);
  EXPECT_EQ(first.run({at::ones({1})})[0].toTensor().item<float>(), 1);
  EXPECT_EQ(first.run({at::ones({1})})[0].toTensor().item<float>(), 2);
  EXPECT_EQ(second.run({at::ones({1})})[0].toTensor().item<float>(), 1);
}

TEST(CompiledGraph, KeepsAsManyPlansAsItMay) {
  const auto compiled = compile(mlp(), {.max_plans = 3});
  for (int64_t size = 1; size <= 7; ++size) compiled->run({at::randn({size, 2, 20})});
  EXPECT_EQ(compiled->plan_count(), 3u);
}

TEST(CompiledGraph, ManyThreadsGiveTheBytesOfOne) {
  const auto module = mlp();
  const auto compiled = compile(module);
  std::vector<at::Tensor> inputs, expected;
  for (int i = 0; i < 8; ++i) {
    inputs.push_back(at::randn({1 + i % 3, 5, 20}));
    expected.push_back(compiled->run({inputs.back()})[0].toTensor());
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < inputs.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        if (!compiled->run({inputs[i]})[0].toTensor().equal(expected[i])) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CompiledGraph, UnknownPassIsNamedWithTheNearest) {
  EXPECT_THAT(
      message_of(ErrorCode::kInvalidArgument, [] { compile(mlp(), {.disabled_passes = {"clean_upp"}}); }),
      HasSubstr("clean_up"));
  for (const PassInfo& pass : compile_passes()) {
    const auto module = mlp();
    const auto compiled = compile(module, {.disabled_passes = {pass.name}});
    const at::Tensor x = at::randn({2, 3, 20});
    EXPECT_TRUE(
        at::allclose(compiled->run({x})[0].toTensor(), interpreted(module, {x})[0].toTensor(), 1e-4, 1e-5))
        << "without " << pass.name;
  }
}

}  // namespace
}  // namespace halftone
