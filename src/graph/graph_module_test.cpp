#include "halftone/graph/graph_module.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"

namespace halftone {
namespace {

std::shared_ptr<GraphModule> scaled() {
  auto module = module_from_text(R"(
graph(%w: parameter "w" f32[2], %x: user "x" f32[2]) {
  %y: f32[2] = aten::mul.Tensor(%x, %w)
  return %y
})",
                                 {{"w", at::ones({2})}});
  module->name = "scaled";
  module->notes = {"a note"};
  module->sample_inputs = {at::ones({2})};
  module->ranges["s0"] = {};
  return module;
}

TEST(GraphModule, ACloneSharesTensorsAndNothingElse) {
  const auto module = scaled();
  const auto clone = module->clone();
  EXPECT_EQ(print_graph(clone->graph()), print_graph(module->graph()));
  EXPECT_TRUE(clone->tensor("w").is_same(module->tensor("w")));
  EXPECT_EQ(clone->name, "scaled");
  EXPECT_EQ(clone->notes, module->notes);
  EXPECT_EQ(clone->sample_inputs.size(), 1U);
  EXPECT_EQ(clone->ranges.size(), 1U);
  EXPECT_EQ(clone->call_spec().args, module->call_spec().args);
  clone->put_tensor("w", at::zeros({2}));
  clone->mutable_graph().rename(clone->mutable_graph().value("y"), "z");
  EXPECT_EQ(module->tensor("w").sum().item<float>(), 2);
  EXPECT_NE(module->graph().try_value("y"), nullptr);
}

TEST(GraphModule, AnotherGraphIsCalledAsTheFirst) {
  const auto module = scaled();
  const auto other = module->with_graph(
      parse_graph("graph(%x: user \"x\" f32[2]) { %y: f32[2] = aten::neg(%x) return %y }"), {});
  EXPECT_EQ(other->name, "scaled");
  EXPECT_EQ(other->sample_inputs.size(), 1U);
  EXPECT_TRUE(other->tensors()->empty());
  EXPECT_EQ(Session(other).run({at::ones({2})})[0].toTensor().sum().item<float>(), -2);
}

TEST(GraphModule, AGraphOfOtherInputsIsCalledFlatAndHasNoSamples) {
  const auto module = scaled();
  const auto other =
      module->with_flat_graph(parse_graph("graph(%x: user \"x\" f32[2], %y: user \"y\" f32[2]) { %z: f32[2] "
                                          "= aten::add.Tensor(%x, %y) return %z }"),
                              {});
  EXPECT_EQ(other->name, "scaled");
  EXPECT_EQ(other->ranges.size(), 1U);
  EXPECT_TRUE(other->sample_inputs.empty());
  EXPECT_TRUE(other->notes.empty());
  EXPECT_EQ(other->call_spec().args.children.size(), 2U);
}

}  // namespace
}  // namespace halftone
