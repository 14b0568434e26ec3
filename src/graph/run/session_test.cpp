#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "graph/test_support.h"
#include "halftone/graph/graph_module.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kCounterInPlace = R"(
graph(%n: buffer "count" f32[1], %x: user "x" f32[s0]) {
  %v: f32[1] = aten::view(%n, [1])
  %w: f32[1] = aten::add_.Tensor(%v, 1)
  %y: f32[s0] = aten::mul.Tensor(%x, %n)
  return %y
})";

constexpr std::string_view kCounterAsOutput = R"(
graph(%n: buffer "count" f32[1], %x: user "x" f32[s0]) {
  %m: f32[1] = aten::add.Tensor(%n, 1)
  %y: f32[s0] = aten::mul.Tensor(%x, %m)
  return buffer_mutation "count" %m, %y
})";

class SessionState : public testing::TestWithParam<std::string_view> {};

TEST_P(SessionState, LivesInTheSessionAndCanBeReset) {
  const auto module = module_from_text(GetParam(), {{"count", at::zeros({1})}});
  Session first(module), second(module);
  const at::Tensor one = at::ones({1});
  EXPECT_EQ(first.run({one})[0].toTensor().item<float>(), 1);
  EXPECT_EQ(first.run({one})[0].toTensor().item<float>(), 2);
  EXPECT_EQ(second.run({one})[0].toTensor().item<float>(), 1);
  EXPECT_EQ(first.state("count").item<float>(), 2);
  EXPECT_EQ(first.state_names(), std::vector<std::string>{"count"});
  first.reset();
  EXPECT_EQ(first.run({one})[0].toTensor().item<float>(), 1);
  EXPECT_EQ(module->tensor("count").item<float>(), 0);
  EXPECT_THROW((void)first.state("x"), Error);
}

INSTANTIATE_TEST_SUITE_P(BothForms, SessionState, testing::Values(kCounterInPlace, kCounterAsOutput));

TEST(Session, BatchNormInTrainingUpdatesTheSessionsStatisticsOnly) {
  const auto module = module_from_text(R"(
graph(%m: buffer "mean" f32[3], %v: buffer "var" f32[3], %x: user "x" f32[4, 3]) {
  %y: f32[4, 3] = aten::batch_norm(%x, None, None, %m, %v, true, 0.1, 1e-05, false)
  return %y
})",
                                       {{"mean", at::zeros({3})}, {"var", at::ones({3})}});
  Session session(module);
  const at::Tensor x = at::randn({4, 3});
  session.run({x});
  EXPECT_TRUE(session.state("mean").allclose(x.mean(0) * 0.1));
  EXPECT_TRUE(module->tensor("mean").equal(at::zeros({3})));
}

TEST(Session, WritesMutatedInputsInPlace) {
  const auto module = module_from_text(R"(
graph(%x: user "x" f32[2]) {
  %y: f32[2] = aten::add.Tensor(%x, 1)
  return input_mutation "x" %y, 7
})");
  EXPECT_EQ(module->mutated_input_names(), std::vector<std::string>{"x"});
  const at::Tensor x = at::zeros({2});
  EXPECT_EQ(Session(module).run({x})[0].toInt(), 7);
  EXPECT_TRUE(x.equal(at::ones({2})));
}

TEST(Session, RefusesACallWhileAnotherOneRuns) {
  const auto module =
      module_from_text("graph(%x: user \"x\" f32[2]) { %y: f32[2] = aten::relu(%x)\n return %y }");
  Session session(module);
  std::string message;
  session.set_node_hook([&](const Node&, const std::vector<c10::IValue>&, double) {
    std::thread([&] {
      message = message_of(ErrorCode::kState, [&] { session.run({at::randn({2})}); });
    }).join();
  });
  session.run({at::randn({2})});
  EXPECT_THAT(message, HasSubstr("another call is running"));
  session.set_node_hook({});
  EXPECT_NO_THROW(session.run({at::randn({2})}));
}

TEST(Session, KeepsTheTensorsAndTheGraphItWasMadeWith) {
  const auto module = module_from_text(
      "graph(%w: parameter \"w\" f32[2], %x: user \"x\" f32[2]) { %y: f32[2] = aten::mul.Tensor(%x, %w)\n "
      "return %y }",
      {{"w", at::ones({2})}});
  Session before(module);
  module->set_tensor("w", at::full({2}, 5.));
  module->mutable_graph().value("y")->producer()->set_input(1, Argument(7.0));
  Session after(module);
  EXPECT_EQ(before.run({at::ones({2})})[0].toTensor()[0].item<float>(), 1);
  EXPECT_EQ(after.run({at::ones({2})})[0].toTensor()[0].item<float>(), 7);
}

TEST(Session, CallsWithNestedArguments) {
  auto graph = parse_graph(R"(
graph(%a: user "a" f32[2], %b: user "b" f32[2], %k_z: user "k_z" f32[2]) {
  %s: f32[2] = aten::add.Tensor(%a, %b)
  %t: f32[2] = aten::add.Tensor(%s, %k_z)
  return %s, %t
})");
  using Kind = TreeSpec::Kind;
  const TreeSpec leaf;
  CallSpec call;
  call.args = {Kind::kTuple, "", {}, {{Kind::kList, "", {}, {leaf, leaf}}}};
  call.kwargs = {Kind::kDict, "", {"k"}, {{Kind::kDict, "", {"z"}, {leaf}}}};
  call.result = {Kind::kDict, "", {"sum", "total"}, {leaf, leaf}};
  const auto module = std::make_shared<GraphModule>(std::move(graph), TensorMap{}, call);
  Session session(module);
  c10::impl::GenericDict z(c10::StringType::get(), c10::AnyType::get());
  z.insert("z", at::ones({2}));
  const auto pair = c10::List<at::Tensor>({at::ones({2}), at::ones({2})});
  const auto result = session({pair}, {{"k", z}}).toGenericDict();
  EXPECT_EQ(result.at("total").toTensor()[0].item<float>(), 3);
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { session({pair}, {}); }),
              HasSubstr("key k is missing"));
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                         [&] {
                           session({at::ones({2})}, {{"k", z}});
                         }),
              HasSubstr("arguments[0]: expected a list of 2"));
}

TEST(GraphModule, NamesTheNearestTensorAndChecksForm) {
  const auto module = module_from_text("graph(%w: parameter \"encoder.weight\" f32[2]) { return %w }",
                                       {{"encoder.weight", at::ones({2})}});
  EXPECT_THAT(message_of(ErrorCode::kNotFound, [&] { module->set_tensor("encoder.wieght", at::ones({2})); }),
              HasSubstr("did you mean \"encoder.weight\""));
  EXPECT_THAT(
      message_of(ErrorCode::kInvalidArgument, [&] { module->set_tensor("encoder.weight", at::ones({3})); }),
      HasSubstr("expected float32 [2], found float32 [3]"));
}

}  // namespace
}  // namespace halftone
