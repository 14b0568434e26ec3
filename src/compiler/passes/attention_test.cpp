#include "compiler/passes/test_support.h"

namespace halftone::compiler {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(RecogniseAttention, ScaledDotProductAttention) {
  const Rewritten graphs = rewrite(
      R"(graph(%q: user "q" f32[s0, 4, 5, 8], %k: user "k" f32[s0, 4, 7, 8], %v: user "v" f32[s0, 4, 7, 8], %mask: user "mask" bool[s0, 1, 1, 7]) {
    %a: f32[s0, 4, 5, 8; 160, 8, 32, 1] = aten::scaled_dot_product_attention(%q, %k, %v, %mask)
    %t: f32[s0, 5, 4, 8] = aten::transpose.int(%a, 1, 2)
    %y: f32[s0, 5, 32] = aten::flatten.using_ints(%t, 2)
    %r: f32[s0, 5, 32] = aten::neg(%y)
    return %r
  })",
      {}, {"recognise_attention"});
  EXPECT_EQ(graphs.count("halftone::attention"), 1);
  EXPECT_EQ(graphs.after->nodes().size(), 4);
  expect_same_results(graphs,
                      {at::randn({2, 4, 5, 8}), at::randn({2, 4, 7, 8}), at::randn({2, 4, 7, 8}),
                       at::rand({2, 1, 1, 7}) > 0.3},
                      1e-5);
}

// In a few spellings of the scores between the two products.
std::string spelled(const std::string& scores, const std::string& mask = "f32[5, 7]") {
  return R"(graph(%q: user "q" f32[s0, 4, 5, 8], %k: user "k" f32[s0, 4, 7, 8], %v: user "v" f32[s0, 4, 7, 8], %mask: user "mask" )" +
         mask + R"() {
    %kt: f32[s0, 4, 8, 7; 224, 56, 1, 8] = aten::transpose.int(%k, -1, -2)
    %p: f32[s0, 4, 5, 7] = aten::matmul(%q, %kt)
    )" + scores +
         R"(
    %w: f32[s0, 4, 5, 7] = aten::softmax.int(%s, -1)
    %a: f32[s0, 4, 5, 8] = aten::matmul(%w, %v)
    %t: f32[s0, 5, 4, 8; 160, 8, 40, 1] = aten::transpose.int(%a, 1, 2)
    %c: f32[s0, 5, 4, 8] = aten::contiguous(%t)
    %y: f32[s0, 5, 32] = aten::view(%c, [-1, 5, 32])
    %r: f32[s0, 5, 32] = aten::neg(%y)
    return %r
  })";
}

std::vector<c10::IValue> inputs(const at::Tensor& mask) {
  return {at::randn({2, 4, 5, 8}), at::randn({2, 4, 7, 8}), at::randn({2, 4, 7, 8}), mask};
}

TEST(RecogniseAttention, DivisionAndAddedMask) {
  const Rewritten graphs = rewrite(spelled(R"(%d: f32[s0, 4, 5, 7] = aten::div.Tensor(%p, 2.8284271247461903)
    %s: f32[s0, 4, 5, 7] = aten::add.Tensor(%d, %mask))"),
                                   {}, {"recognise_attention", "clean_up_again"});
  EXPECT_EQ(graphs.count("halftone::attention"), 1);
  EXPECT_EQ(graphs.count("aten::contiguous"), 0) << graphs.text();
  EXPECT_EQ(graphs.count("aten::matmul"), 0);
  expect_same_results(graphs, inputs(at::randn({5, 7})), 1e-5);
}

TEST(RecogniseAttention, MasksThatPutValuesInPlace) {
  const at::Tensor hidden = (at::rand({5, 7}) > 0.5).logical_and(at::arange(7) != 0);
  for (const std::string fill : {"-inf", "-1e9"}) {
    const Rewritten filled = rewrite(
        spelled("%s: f32[s0, 4, 5, 7] = aten::masked_fill.Scalar(%p, %mask, " + fill + ")", "bool[5, 7]"), {},
        {"recognise_attention"});
    EXPECT_EQ(filled.count("halftone::attention"), 1);
    expect_same_results(filled, inputs(hidden), 1e-5);
    const Rewritten chosen = rewrite(
        spelled("%s: f32[s0, 4, 5, 7] = aten::where.ScalarOther(%mask, %p, " + fill + ")", "bool[5, 7]"), {},
        {"recognise_attention"});
    EXPECT_EQ(chosen.count("halftone::attention"), 1);
    expect_same_results(chosen, inputs(hidden.logical_not()), 1e-5);
  }
}

TEST(RecogniseAttention, SaysWhyNot) {
  const Rewritten small =
      rewrite(spelled("%s: f32[s0, 4, 5, 7] = aten::masked_fill.Scalar(%p, %mask, -100.0)", "bool[5, 7]"), {},
              {"recognise_attention"});
  EXPECT_THAT(small.log, Contains(HasSubstr("neither -inf nor below -1e8")));
  const Rewritten other =
      rewrite(spelled("%s: f32[s0, 4, 5, 7] = aten::tanh(%p)"), {}, {"recognise_attention"});
  EXPECT_THAT(other.log, Contains(HasSubstr("between the products stands aten::tanh")));
  EXPECT_EQ(other.text(), print_graph(*other.before));
}

TEST(RecogniseAttention, BmmWithScaledOperandsAndACopyWhereTheLayoutIsSeen) {
  const Rewritten graphs = rewrite(
      R"(graph(%q: user "q" f32[s0, 4, 5, 8], %k: user "k" f32[s0, 4, 7, 8], %v: user "v" f32[s0, 4, 7, 8], %mask: user "mask" f32[5, 7]) {
    %qs: f32[s0, 4, 5, 8] = aten::mul.Scalar(%q, 0.5)
    %kt: f32[s0, 4, 8, 7; 224, 56, 1, 8] = aten::permute(%k, [0, 1, 3, 2])
    %ks: f32[s0, 4, 8, 7; 224, 56, 1, 8] = aten::mul.Scalar(%kt, 0.5)
    %q3: f32[4*s0, 5, 8] = aten::view(%qs, [-1, 5, 8])
    %kc: f32[s0, 4, 8, 7] = aten::clone(%ks, memory_format=format:contiguous)
    %k3: f32[4*s0, 8, 7] = aten::view(%kc, [-1, 8, 7])
    %b: f32[4*s0, 5, 7] = aten::bmm(%q3, %k3)
    %s4: f32[s0, 4, 5, 7] = aten::view(%b, [-1, 4, 5, 7])
    %s: f32[s0, 4, 5, 7] = aten::add.Tensor(%s4, %mask)
    %w: f32[s0, 4, 5, 7] = aten::_softmax(%s, -1, false)
    %w3: f32[4*s0, 5, 7] = aten::view(%w, [-1, 5, 7])
    %v3: f32[4*s0, 7, 8] = aten::view(%v, [-1, 7, 8])
    %b2: f32[4*s0, 5, 8] = aten::bmm(%w3, %v3)
    %a: f32[s0, 4, 5, 8] = aten::view(%b2, [-1, 4, 5, 8])
    %r: f32[s0, 4, 5, 8] = aten::neg(%a)
    return %r
  })",
      {}, {"recognise_attention"});
  EXPECT_EQ(graphs.count("halftone::attention"), 1);
  EXPECT_EQ(graphs.count("aten::clone"), 1);
  EXPECT_EQ(graphs.count("aten::bmm"), 0);
  expect_same_results(graphs, inputs(at::randn({5, 7})), 1e-5);
}

TEST(RecogniseAttention, RepeatedHeadsAreShared) {
  const Rewritten graphs = rewrite(
      R"(graph(%q: user "q" f32[2, 4, 5, 8], %k: user "k" f32[2, 2, 7, 8], %v: user "v" f32[2, 2, 7, 8]) {
    %k1: f32[2, 2, 1, 7, 8] = aten::unsqueeze(%k, 2)
    %k2: f32[2, 2, 2, 7, 8; 112, 56, 0, 8, 1] = aten::expand(%k1, [2, 2, 2, 7, 8])
    %k4: f32[2, 4, 7, 8] = aten::reshape(%k2, [2, 4, 7, 8])
    %v4: f32[2, 4, 7, 8] = aten::repeat_interleave.self_int(%v, 2, 1)
    %a: f32[2, 4, 5, 8; 160, 8, 32, 1] = aten::scaled_dot_product_attention(%q, %k4, %v4)
    %t: f32[2, 5, 4, 8] = aten::transpose.int(%a, 1, 2)
    %y: f32[2, 5, 32] = aten::flatten.using_ints(%t, 2)
    %r: f32[2, 5, 32] = aten::neg(%y)
    return %r
  })",
      {}, {"recognise_attention"});
  EXPECT_EQ(graphs.after->nodes().size(), 4) << graphs.text();
  expect_same_results(graphs, {at::randn({2, 4, 5, 8}), at::randn({2, 2, 7, 8}), at::randn({2, 2, 7, 8})},
                      1e-5);
}

// Without heads: a query, key and value of three dimensions, and the scores in a few spellings.
std::string headless(const std::string& scores, const std::string& mask = "f32[s0, 5, 7]") {
  return R"(graph(%q: user "q" f32[s0, 5, 8], %k: user "k" f32[s0, 7, 8], %v: user "v" f32[s0, 7, 8], %mask: user "mask" )" +
         mask + R"() {
    %kt: f32[s0, 8, 7; 56, 1, 8] = aten::transpose.int(%k, 1, 2)
    )" + scores +
         R"(
    %w: f32[s0, 5, 7] = aten::softmax.int(%s, -1)
    %a: f32[s0, 5, 8] = aten::bmm(%w, %v)
    %r: f32[s0, 5, 8] = aten::neg(%a)
    return %r
  })";
}

std::vector<c10::IValue> headless_inputs(const at::Tensor& mask) {
  return {at::randn({3, 5, 8}), at::randn({3, 7, 8}), at::randn({3, 7, 8}), mask};
}

TEST(RecogniseAttention, WithoutHeads) {
  const Rewritten graphs = rewrite(headless(R"(%p: f32[s0, 5, 7] = aten::bmm(%q, %kt)
    %d: f32[s0, 5, 7] = aten::mul.Tensor(%p, 0.25)
    %s: f32[s0, 5, 7] = aten::add.Tensor(%d, %mask))"),
                                   {}, {"recognise_attention"});
  EXPECT_EQ(
      graphs.text(),
      R"(graph(%q: user "q" f32[s0, 5, 8], %k: user "k" f32[s0, 7, 8], %v: user "v" f32[s0, 7, 8], %mask: user "mask" f32[s0, 5, 7]) {
  %q_head: f32[s0, 1, 5, 8] = aten::unsqueeze(%q, 1)
  %k_head: f32[s0, 1, 7, 8] = aten::unsqueeze(%k, 1)
  %v_head: f32[s0, 1, 7, 8] = aten::unsqueeze(%v, 1)
  %mask_head: f32[s0, 1, 5, 7] = aten::unsqueeze(%mask, 1)
  %attention: f32[s0, 1, 5, 8; 40, 8, 8, 1] = halftone::attention(%q_head, %k_head, %v_head, %mask_head, causal=false, scale=0.25)
  %a: f32[s0, 5, 8] = aten::squeeze.dim(%attention, 1)
  %r: f32[s0, 5, 8] = aten::neg(%a)
  return %r
}
)");
  expect_same_results(graphs, headless_inputs(at::randn({3, 5, 7})), 1e-5);
}

TEST(RecogniseAttention, BaddbmmAddsTheMaskAndScales) {
  for (const char* mask : {"f32[s0, 5, 7]", "f32[1, 5, 7]", "f32[5, 7]"}) {
    const Rewritten graphs =
        rewrite(headless("%s: f32[s0, 5, 7] = aten::baddbmm(%mask, %q, %kt, alpha=0.5)", mask), {},
                {"recognise_attention"});
    EXPECT_EQ(graphs.count("halftone::attention"), 1) << graphs.text();
    EXPECT_EQ(graphs.count("aten::baddbmm"), 0);
    expect_same_results(
        graphs, headless_inputs(at::randn({5, 7}).expand({mask[4] == 's' ? 3 : 1, 5, 7}).clone()), 1e-5);
  }
  const Rewritten ignored =
      rewrite(headless("%s: f32[s0, 5, 7] = aten::baddbmm(%mask, %q, %kt, beta=0, alpha=0.5)"), {},
              {"recognise_attention"});
  EXPECT_EQ(ignored.count("halftone::attention"), 1);
  expect_same_results(ignored, headless_inputs(at::full({3, 5, 7}, NAN)), 1e-5);
}

TEST(RecogniseAttention, BaddbmmOfFlattenedHeads) {
  const auto text = [](const std::string& mask) {
    return R"(graph(%q: user "q" f32[2, 4, 5, 8], %k: user "k" f32[2, 4, 7, 8], %v: user "v" f32[2, 4, 7, 8], %mask: user "mask" )" +
           mask + R"() {
    %kt: f32[2, 4, 8, 7; 224, 56, 1, 8] = aten::transpose.int(%k, 2, 3)
    %q3: f32[8, 5, 8] = aten::reshape(%q, [8, 5, 8])
    %k3: f32[8, 8, 7; 56, 1, 8] = aten::reshape(%kt, [8, 8, 7])
    %b: f32[8, 5, 7] = aten::baddbmm(%mask, %q3, %k3, alpha=0.5)
    %s: f32[2, 4, 5, 7] = aten::view(%b, [2, 4, 5, 7])
    %w: f32[2, 4, 5, 7] = aten::softmax.int(%s, -1)
    %a: f32[2, 4, 5, 8] = aten::matmul(%w, %v)
    %r: f32[2, 4, 5, 8] = aten::neg(%a)
    return %r
  })";
  };
  const Rewritten shared = rewrite(text("f32[1, 5, 7]"), {}, {"recognise_attention"});
  EXPECT_EQ(shared.count("halftone::attention"), 1) << shared.text();
  expect_same_results(shared, inputs(at::randn({1, 5, 7})), 1e-5);
  // One for each head, flattened with the batch: not what attention can add.
  const Rewritten apart = rewrite(text("f32[8, 5, 7]"), {}, {"recognise_attention"});
  EXPECT_EQ(apart.text(), print_graph(*apart.before));
}

TEST(RecogniseAttention, BaddbmmThatIsScaledAfterwardsIsNone) {
  const Rewritten graphs = rewrite(headless(R"(%b: f32[s0, 5, 7] = aten::baddbmm(%mask, %q, %kt)
    %s: f32[s0, 5, 7] = aten::mul.Tensor(%b, 0.5))"),
                                   {}, {"recognise_attention"});
  EXPECT_THAT(graphs.log, Contains(HasSubstr("the sum of scores and mask is scaled")));
  EXPECT_EQ(graphs.text(), print_graph(*graphs.before));
  const Rewritten beta = rewrite(headless("%s: f32[s0, 5, 7] = aten::baddbmm(%mask, %q, %kt, beta=2)"), {},
                                 {"recognise_attention"});
  EXPECT_EQ(beta.text(), print_graph(*beta.before));
}

TEST(RecogniseAttention, ScaledDotProductAttentionWithoutHeads) {
  const Rewritten graphs = rewrite(
      R"(graph(%q: user "q" f32[s0, 5, 8], %k: user "k" f32[s0, 7, 8], %v: user "v" f32[s0, 7, 8], %mask: user "mask" bool[s0, 5, 7]) {
    %a: f32[s0, 5, 8] = aten::scaled_dot_product_attention(%q, %k, %v, %mask)
    %r: f32[s0, 5, 8] = aten::neg(%a)
    return %r
  })",
      {}, {"recognise_attention"});
  EXPECT_EQ(graphs.count("halftone::attention"), 1) << graphs.text();
  at::Tensor keep = at::rand({3, 5, 7}) > 0.3;
  keep.select(2, 0).fill_(true);
  expect_same_results(graphs, headless_inputs(keep), 1e-5);
}

TEST(RecogniseAttention, WeightsThatAreAResultToo) {
  const Rewritten graphs = rewrite(
      R"(graph(%q: user "q" f32[2, 5, 8], %k: user "k" f32[2, 7, 8], %v: user "v" f32[2, 7, 8]) {
    %kt: f32[2, 8, 7; 56, 1, 8] = aten::transpose.int(%k, 1, 2)
    %p: f32[2, 5, 7] = aten::bmm(%q, %kt)
    %w: f32[2, 5, 7] = aten::softmax.int(%p, -1)
    %a: f32[2, 5, 8] = aten::bmm(%w, %v)
    return %a, %w
  })",
      {}, {"recognise_attention"});
  EXPECT_THAT(graphs.log, Contains(HasSubstr("its weights are a result too")));
  EXPECT_EQ(graphs.text(), print_graph(*graphs.before));
}

}  // namespace
}  // namespace halftone::compiler
