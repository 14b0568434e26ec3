#include "quant/ptq/canonical_linear.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"

namespace halftone::ptq {
namespace {

std::shared_ptr<GraphModule> product_module(const std::string& node) {
  return module_from_text(R"(
graph(%w: parameter "w" f32[4, 3], %b: parameter "b" f32[4], %one: parameter "one" f32[1], %x: user "x" f32[2, 3]) {
  %wt: f32[3, 4] = aten::t(%w)
  )" + node + R"(
  return %y
})",
                          {{"w", at::randn({4, 3})}, {"b", at::randn({4})}, {"one", at::randn({1})}});
}

TEST(MakeLinears, TakesProductsWithATransposedWeight) {
  for (const char* node : {"%y: f32[2, 4] = aten::addmm(%b, %x, %wt)", "%y: f32[2, 4] = aten::mm(%x, %wt)",
                           "%y: f32[2, 4] = aten::matmul(%x, %wt)"}) {
    const auto module = product_module(node);
    const at::Tensor x = at::randn({2, 3});
    const at::Tensor before = Session(module).run({x})[0].toTensor();
    EXPECT_EQ(make_linears(module->mutable_graph()), 1U) << node;
    ASSERT_EQ(module->graph().nodes().size(), 1U) << node;
    EXPECT_EQ(module->graph().nodes().front()->target(), "aten::linear");
    EXPECT_EQ(module->graph().nodes().front()->output()->name(), "y");
    EXPECT_TRUE(Session(module).run({x})[0].toTensor().allclose(before)) << node;
  }
}

TEST(MakeLinears, LeavesWhatIsNoLinear) {
  for (const char* node :
       {"%y: f32[2, 4] = aten::addmm(%one, %x, %wt)", "%y: f32[2, 4] = aten::addmm(%b, %x, %wt, alpha=2)",
        "%y: f32[2, 4] = aten::addmm(%b, %x, %wt, beta=0.5)"}) {
    const auto module = product_module(node);
    EXPECT_EQ(make_linears(module->mutable_graph()), 0U) << node;
    EXPECT_EQ(module->graph().nodes().size(), 2U) << node;
  }
}

}  // namespace
}  // namespace halftone::ptq
