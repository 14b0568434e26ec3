#include "graph/run/input_check.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<GraphModule> two_inputs() {
  const auto module =
      module_from_text("graph(%x: user \"x\" f32[s0, 3], %y: user \"y\" i64[2*s0]) { return %x, %y }");
  module->ranges["s0"] = {3, 8};
  module->guards.push_back({SymExpr::parse("s0 % 2 == 0"), "s0 % 2 == 0"});
  return module;
}

std::string refusal(const at::Tensor& x, const at::Tensor& y) {
  const InputCheck check(*two_inputs());
  return message_of(ErrorCode::kGuard, [&] { check.check({x, y}); });
}

at::Tensor ints(int64_t n) {
  return at::zeros({n}, at::kLong);
}

TEST(InputCheck, BindsSymbols) {
  const SymbolBindings bindings = InputCheck(*two_inputs()).check({at::zeros({4, 3}), ints(8)});
  EXPECT_EQ(bindings.at("s0"), 4);
}

TEST(InputCheck, NamesInputAndDimension) {
  EXPECT_THAT(refusal(at::zeros({4, 5}), ints(8)),
              HasSubstr("input \"x\", dimension 1: expected 3, found 5"));
  EXPECT_THAT(refusal(at::zeros({4, 3}), ints(9)),
              HasSubstr("input \"y\", dimension 0: expected 8 (2*s0), found 9"));
  EXPECT_THAT(refusal(at::zeros({4}), ints(8)), HasSubstr("input \"x\": expected 2 dimensions, found 1"));
  EXPECT_THAT(refusal(at::zeros({4, 3}), at::zeros({8})),
              HasSubstr("input \"y\": expected dtype int64, found float32"));
}

TEST(InputCheck, ChecksRangesAtBothEndsAndGuards) {
  EXPECT_THAT(refusal(at::zeros({1, 3}), ints(2)), HasSubstr("1 is outside the exported range 3 to 8 of s0"));
  EXPECT_THAT(refusal(at::zeros({9, 3}), ints(18)), HasSubstr("9 is outside"));
  EXPECT_THAT(refusal(at::zeros({5, 3}), ints(10)), HasSubstr("s0 % 2 == 0"));
  EXPECT_NO_THROW(InputCheck(*two_inputs()).check({at::zeros({8, 3}), ints(16)}));
}

TEST(InputCheck, AMinimumOfTwoIsTheExportersOwnAndNotChecked) {
  const auto module = module_from_text("graph(%x: user \"x\" f32[s0]) { return %x }");
  module->ranges["s0"] = {2, 8};
  EXPECT_EQ(InputCheck(*module).check({at::zeros({1})}).at("s0"), 1);
}

TEST(InputCheck, SolvesForASymbolThatStandsOnlyInAnExpression) {
  const auto module = module_from_text("graph(%y: user \"y\" f32[2*s1 + 1]) { return %y }");
  EXPECT_EQ(InputCheck(*module).check({at::zeros({7})}).at("s1"), 3);
  EXPECT_THAT(message_of(ErrorCode::kGuard, [&] { InputCheck(*module).check({at::zeros({8})}); }),
              HasSubstr("8 is not of the form 2*s1 + 1"));
}

TEST(InputCheck, InputsThatTheExportBakedInMustBeTheSame) {
  const auto module = module_from_text("graph(%k: user \"k\" int, %n: user \"n\" none) { return %k }");
  module->mutable_graph().set_input_fixed(0, Argument(3));
  module->mutable_graph().set_input_fixed(1, Argument());
  const InputCheck check(*module);
  EXPECT_NO_THROW(check.check({3, c10::IValue()}));
  EXPECT_THAT(message_of(ErrorCode::kGuard,
                         [&] {
                           check.check({4, c10::IValue()});
                         }),
              HasSubstr("the constant 3"));
  EXPECT_THAT(message_of(ErrorCode::kGuard, [&] { check.check({3, 1}); }), HasSubstr("input \"n\""));
}

}  // namespace
}  // namespace halftone
