#include "compiler/passes/test_support.h"

namespace halftone::compiler {
namespace {

using testing::HasSubstr;

TEST(CleanUp, RemovesWhatChangesNothing) {
  const Rewritten graphs = rewrite(R"(graph(%x: user "x" f32[s0, 4]) {
    aten::_assert_tensor_metadata(%x, dtype=dtype:f32, device=device:cpu)
    %a: f32[s0, 4] = aten::relu(%x)
    %b: f32[s0, 4] = aten::dropout(%a, 0.1, false)
    %c: f32[s0, 4] = aten::detach(%b)
    %d: f32[s0, 4] = aten::contiguous(%c)
    %n: int(s0) = aten::sym_size.int(%x, 0)
    %e: f32[s0, 4] = aten::expand(%d, [%n, -1])
    %f: f32[s0, 4] = aten::to.dtype(%e, dtype:f32)
    %g: f32[s0, 4] = aten::clone(%f)
    %h: f32[s0, 4] = aten::permute(%g, [0, 1])
    %r: f32[s0, 4] = aten::neg(%h)
    return %r
  })",
                                   {}, {"clean_up"});
  EXPECT_EQ(graphs.text(), print_graph(*parse_graph(R"(graph(%x: user "x" f32[s0, 4]) {
    %a: f32[s0, 4] = aten::relu(%x)
    %r: f32[s0, 4] = aten::neg(%a)
    return %r
  })")));
  expect_same_results(graphs, {at::randn({3, 4})});
}

TEST(CleanUp, KeepsWhatMatters) {
  const char* text = R"(graph(%x: user "x" f32[4, 4]) {
    aten::_assert_tensor_metadata(%x, [4, 4])
    %given: f32[4, 4] = aten::contiguous(%x)
    %a: f32[4, 4] = aten::relu(%given)
    %train: f32[4, 4] = aten::dropout(%a, 0.5, true)
    %t: f32[4, 4; 1, 4] = aten::t(%a)
    %dense: f32[4, 4] = aten::contiguous(%t)
    %half: f16[4, 4] = aten::to.dtype(%a, dtype:f16)
    %every: f32[2, 4; 8, 1] = aten::slice.Tensor(%a, 0, 0, 4, 2)
    return %train, %dense, %half, %every
  })";
  const Rewritten graphs = rewrite(text, {}, {"clean_up"});
  EXPECT_EQ(graphs.text(), print_graph(*graphs.before));
}

TEST(CleanUp, KeepsCopiesThatACallerOrAWriterCouldTell) {
  const char* text = R"(graph(%x: user "x" f32[4]) {
    %returned: f32[4] = aten::clone(%x)
    %a: f32[4] = aten::relu(%x)
    %copy: f32[4] = aten::clone(%a)
    %written: f32[4] = aten::add_.Tensor(%a, 1)
    %sum: f32[4] = aten::add.Tensor(%copy, %written)
    return %returned, %sum
  })";
  const Rewritten graphs = rewrite(text, {}, {"clean_up"});
  EXPECT_EQ(graphs.text(), print_graph(*graphs.before));
  expect_same_results(graphs, {at::randn({4})});
}

TEST(CleanUp, ViewsThatComeBack) {
  const Rewritten graphs = rewrite(R"(graph(%x: user "x" f32[2, 3, 4]) {
    %a: f32[6, 4] = aten::view(%x, [6, 4])
    %b: f32[2, 3, 4] = aten::view(%a, [2, 3, 4])
    %r: f32[2, 3, 4] = aten::neg(%b)
    return %r
  })",
                                   {}, {"clean_up"});
  EXPECT_EQ(graphs.count("aten::view"), 0);
  expect_same_results(graphs, {at::randn({2, 3, 4})});
}

TEST(ViewCopies, BecomeViewsWhereTheOperandIsDense) {
  const Rewritten graphs = rewrite(R"(graph(%x: user "x" f32[2, 4]) {
    %a: f32[2, 4] = aten::relu(%x)
    %b: f32[8] = aten::view_copy(%a, [8])
    %r: f32[8] = aten::neg(%b)
    return %r
  })",
                                   {}, {"view_copies"});
  EXPECT_EQ(graphs.count("aten::view"), 1);
  EXPECT_EQ(graphs.count("aten::view_copy"), 0);
  expect_same_results(graphs, {at::randn({2, 4})});
}

TEST(Passes, UnknownNamesAreRefusedWithTheNearest) {
  Graph graph;
  TensorMap tensors;
  std::vector<std::string> log;
  const std::string message =
      message_of(ErrorCode::kInvalidArgument, [&] { run_passes(graph, tensors, {}, {"fuse_norms"}, log); });
  EXPECT_THAT(message, HasSubstr("fuse_norm"));
}

TEST(Passes, EachSaysWhatItDid) {
  Graph graph;
  TensorMap tensors;
  std::vector<std::string> log;
  run_passes(graph, tensors, {}, {"clean_up"}, log);
  EXPECT_EQ(log.size(), all_passes().size());
  EXPECT_EQ(log.front(), "functionalize: found nothing");
  EXPECT_EQ(log.at(1), "clean_up: switched off");
  EXPECT_EQ(log.back(), "drop_unused: found nothing");
}

TEST(Functionalize, SumsInPlaceJoinTheConvolutionBeforeThem) {
  const Rewritten graphs = rewrite(R"(graph(%w: parameter "w" f32[8, 8, 3, 3], %x: user "x" f32[2, 8, 6, 6]) {
    %a: f32[2, 8, 6, 6] = aten::relu(%x)
    %c: f32[2, 8, 6, 6] = aten::conv2d(%a, %w, None, [1, 1], [1, 1])
    %s: f32[2, 8, 6, 6] = aten::add_.Tensor(%c, %a)
    %r: f32[2, 8, 6, 6] = aten::relu_(%s)
    return %r
  })",
                                   {{"w", at::randn({8, 8, 3, 3})}});
  EXPECT_EQ(graphs.count("aten::add_.Tensor") + graphs.count("aten::relu_"), 0U) << graphs.text();
  EXPECT_EQ(graphs.count("aten::add.Tensor"), 0U) << graphs.text();
  EXPECT_EQ(graphs.count("halftone::conv"), 1U);
  expect_same_results(graphs, {at::randn({2, 8, 6, 6})}, 1e-4);
}

TEST(Functionalize, WhatTheCallerSeesIsStillWritten) {
  const Rewritten graphs = rewrite(R"(graph(%x: user "x" f32[4]) {
    %a: f32[4] = aten::mul_.Scalar(%x, 2)
    %b: f32[4] = aten::neg(%a)
    %c: f32[4] = aten::add_.Scalar(%b, 1)
    return %b, %c
  })",
                                   {}, {"functionalize"});
  EXPECT_EQ(graphs.text(), print_graph(*graphs.before));
}

}  // namespace
}  // namespace halftone::compiler
