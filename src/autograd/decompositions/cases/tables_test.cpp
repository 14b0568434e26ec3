// The tables as wholes: their keys, and what entries refuse.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "autograd/decompositions/cases/recorder.h"
#include "halftone/base/error.h"

namespace halftone {
namespace {

using testing::HasSubstr;

std::set<std::string> keys_of(const DecompositionTable& table) {
  std::set<std::string> keys;
  for (const auto& [key, decomposition] : table) keys.insert(key);
  return keys;
}

std::string message_of(const Case& call) {
  torch::jit::Stack stack = call.operands;
  try {
    core_decompositions().at(call.op)(stack);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(DecompositionTables, KeysAreOperators) {
  for (const std::string& key : keys_of(core_decompositions())) {
    EXPECT_NO_THROW(Case{.op = key}.handle()) << key;
  }
}

TEST(DecompositionTables, DefaultIsFunctorchsWithoutCudnn) {
  const std::set<std::string> functorchs = {"aten::conj_physical",
                                            "aten::detach",
                                            "aten::elu",
                                            "aten::elu_backward",
                                            "aten::gelu_backward",
                                            "aten::hardsigmoid",
                                            "aten::hardsigmoid_backward",
                                            "aten::hardswish",
                                            "aten::hardswish_backward",
                                            "aten::hardtanh",
                                            "aten::hardtanh_backward",
                                            "aten::is_same_size",
                                            "aten::leaky_relu",
                                            "aten::leaky_relu_backward",
                                            "aten::masked_fill.Scalar",
                                            "aten::masked_fill.Tensor",
                                            "aten::sigmoid_backward",
                                            "aten::silu_backward",
                                            "aten::tanh_backward",
                                            "aten::threshold_backward"};
  EXPECT_EQ(keys_of(default_decompositions()), functorchs);
}

TEST(DecompositionTables, CoreHasTheDefaultOnes) {
  const std::set<std::string> core = keys_of(core_decompositions());
  for (const std::string& key : keys_of(default_decompositions())) EXPECT_TRUE(core.contains(key)) << key;
  EXPECT_GE(core.size(), 80U);
}

/// The calls inside the table. Empty for operators that are in no expansion.
std::map<std::string, std::set<std::string>> calls_inside(const DecompositionTable& table) {
  std::map<std::string, std::set<std::string>> calls;
  for (const Case& call : all_cases()) {
    for (const std::string& op : expand(table.at(call.op), call).operators) {
      if (table.contains(op)) calls[call.op].insert(op);
    }
  }
  return calls;
}

TEST(DecompositionTables, EveryExpansionEnds) {
  const auto calls = calls_inside(core_decompositions());
  // An operator that only calls ended ones has ended; who is left at last goes in circles.
  std::set<std::string> open;
  for (const auto& [op, callees] : calls) open.insert(op);
  for (bool progress = true; progress;) {
    progress = false;
    for (const auto& [op, callees] : calls) {
      const bool waits = std::any_of(callees.begin(), callees.end(),
                                     [&](const std::string& callee) { return open.contains(callee); });
      if (!waits && open.erase(op) > 0) progress = true;
    }
  }
  EXPECT_FALSE(calls.empty()) << "mish calls softplus";
  EXPECT_THAT(open, testing::IsEmpty());
}

TEST(DecompositionTables, BatchNormInTrainingIsRefusedWhereItWouldWrite) {
  const at::Tensor x = at::randn({4, 3});
  const at::Tensor mean = at::zeros({3});
  const at::Tensor variance = at::ones({3});
  for (const std::string op : {"aten::native_batch_norm", "aten::_native_batch_norm_legit"}) {
    const Case call{.op = op, .operands = {x, c10::IValue(), c10::IValue(), mean, variance, true, 0.1, 1e-5}};
    EXPECT_THAT(message_of(call), HasSubstr("_native_batch_norm_legit_functional")) << op;
  }
  EXPECT_TRUE(at::equal(mean, at::zeros({3})));
}

TEST(DecompositionTables, BadOperandsAreNamed) {
  const at::Tensor x = at::randn({4, 3});
  EXPECT_THAT(message_of({.op = "aten::gelu", .operands = {x, "sigmoid"}}), HasSubstr("\"sigmoid\""));
  EXPECT_THAT(message_of({.op = "aten::gelu_backward", .operands = {x, x, "sigmoid"}}),
              HasSubstr("\"sigmoid\""));
  EXPECT_THAT(message_of({.op = "aten::glu", .operands = {x, 1}}), HasSubstr("odd size, 3"));
  EXPECT_THAT(message_of({.op = "aten::masked_fill.Tensor", .operands = {x, x.gt(0), x}}),
              HasSubstr("2 dimensions"));
  const Case call{.op = "aten::_native_batch_norm_legit.no_stats",
                  .operands = {x, c10::IValue(), c10::IValue(), false, 0.1, 1e-5}};
  EXPECT_THAT(message_of(call), HasSubstr("running_mean"));
}

}  // namespace
}  // namespace halftone
