#include <limits>

#include "backend/test_support.h"
#include "halftone/compile/minify.h"

namespace halftone {
namespace {

/// A backend that gives these results, whatever the graph says.
GraphCompiler giving(std::vector<c10::IValue> results) {
  return [results](const std::shared_ptr<GraphModule>&, const std::vector<c10::IValue>&,
                   const CompilerOptions&) -> CompiledFunction {
    return [results](const std::vector<c10::IValue>&) { return results; };
  };
}

GraphCase identity(const at::Tensor& x) {
  return {module_from_text("graph(%x: user \"x\" tensor) {\n  %y: tensor = aten::clone(%x)\n  return %y\n}"),
          {x}};
}

std::string difference(const at::Tensor& expected, const at::Tensor& result, double tolerance = 1e-3) {
  MinifyOptions options;
  options.tolerance = tolerance;
  const auto failure = find_failure(identity(expected), giving({result}), options);
  if (!failure) return "";
  EXPECT_EQ(to_string(failure->kind), "wrong numbers");
  return failure->message;
}

TEST(FindFailure, ToleratesSmallDifferencesOnly) {
  EXPECT_EQ(difference(at::tensor({1.0F, 100.0F}), at::tensor({1.001F, 100.05F})), "");
  const std::string message = difference(at::tensor({1.0F, 100.0F}), at::tensor({1.01F, 100.05F}));
  EXPECT_NE(message.find("output 0 differs in 1 of 2 elements, by 0.05 at most"), std::string::npos)
      << message;
  EXPECT_NE(difference(at::tensor({1.0F}), at::tensor({1.001F}), 1e-5), "");
  // Types of few bits have steps that are larger than that.
  EXPECT_EQ(difference(at::tensor({1.0F}).to(at::kBFloat16), at::tensor({1.02F}).to(at::kBFloat16)), "");
  EXPECT_NE(difference(at::tensor({1}), at::tensor({2})), "");
}

TEST(FindFailure, KnowsWhatIsNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(difference(at::tensor({nan, inf, -inf}), at::tensor({nan, inf, -inf})), "");
  EXPECT_NE(difference(at::tensor({nan}), at::tensor({1.0F})), "");
  EXPECT_NE(difference(at::tensor({1.0F}), at::tensor({nan})), "");
  EXPECT_NE(difference(at::tensor({inf}), at::tensor({-inf})), "");
  EXPECT_NE(difference(at::tensor({inf}), at::tensor({1e30F})), "");
}

TEST(FindFailure, ComparesFormsToo) {
  EXPECT_NE(difference(at::ones({2, 1}), at::ones({2})).find("float32 [2] instead of float32 [2, 1]"),
            std::string::npos);
  EXPECT_NE(difference(at::ones({2}), at::ones({2}, at::kDouble)).find("float64"), std::string::npos);
  const auto two = find_failure(identity(at::ones({1})), giving({at::ones({1}), at::ones({1})}));
  ASSERT_TRUE(two.has_value());
  EXPECT_NE(two->message.find("values instead of"), std::string::npos);
}

// The interpreter's own sum in float32 cancels; a backend that computes it well is not wrong.
TEST(FindFailure, LetsFloat64DecideWhoIsRight) {
  const GraphCase cancels{module_from_text(R"(
graph(%x: user "x" f32[1]) {
  %big: f32[1] = aten::add.Tensor(%x, 100000000.0)
  %y: f32[1] = aten::sub.Tensor(%big, 100000000.0)
  return %y
})"),
                          {at::tensor({3.0F})}};
  EXPECT_FALSE(find_failure(cancels, giving({at::tensor({3.0F})})).has_value());
  EXPECT_TRUE(find_failure(cancels, giving({at::tensor({30.0F})})).has_value());
}

TEST(FindFailure, SeesWritesThatTheGraphDoesNotDo) {
  const GraphCompiler writes = [](const std::shared_ptr<GraphModule>&, const std::vector<c10::IValue>&,
                                  const CompilerOptions&) -> CompiledFunction {
    return [](const std::vector<c10::IValue>& inputs) {
      std::vector<c10::IValue> results{inputs[0].toTensor().clone()};
      inputs[0].toTensor().zero_();
      return results;
    };
  };
  const GraphCase start = identity(at::ones({2}));
  const auto failure = find_failure(start, writes);
  ASSERT_TRUE(failure.has_value());
  EXPECT_NE(failure->message.find("input \"x\" after the call"), std::string::npos) << failure->message;
  EXPECT_TRUE(at::equal(start.inputs[0].toTensor(), at::ones({2})));
}

TEST(FindFailure, GivesBothTheSameRandomNumbers) {
  const GraphCase random{module_from_text(R"(
graph(%x: user "x" f32[50]) {
  %y: f32[50] = aten::dropout(%x, 0.5, true)
  return %y
})"),
                         {at::ones({50})}};
  at::manual_seed(1);
  EXPECT_FALSE(find_failure(random, lookup_compiler("eager")).has_value());
  const at::Tensor after = at::rand({3});
  at::manual_seed(1);
  EXPECT_TRUE(at::equal(after, at::rand({3})));
}

}  // namespace
}  // namespace halftone
