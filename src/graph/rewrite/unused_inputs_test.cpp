#include "graph/rewrite/unused_inputs.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "graph/test_support.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kText = R"(
graph(%u: user "u" f32[2], %w: parameter "w" f32[2], %x: user "x" f32[2], %b: buffer "b" f32[2], %c: constant "c" f32[2],
      %m: user "m" f32[2]) {
  %y: f32[2] = aten::relu(%x)
  return %y, buffer_mutation "b" %y, input_mutation "m" %y
})";

TensorMap tensors_of_text() {
  return {{"w", at::zeros({2})}, {"b", at::zeros({2})}, {"c", at::zeros({2})}};
}

std::vector<std::string> targets_of(const std::vector<RemovedInput>& removed) {
  std::vector<std::string> targets;
  for (const RemovedInput& input : removed) targets.push_back(input.target);
  return targets;
}

std::vector<std::string> inputs_of(const Graph& graph) {
  std::vector<std::string> targets;
  for (const GraphInput& input : graph.inputs()) targets.push_back(input.target);
  return targets;
}

TEST(UnusedInputs, WhatAMutationOutputWritesStays) {
  const auto module = module_from_text(kText, tensors_of_text());
  EXPECT_THAT(targets_of(remove_unused_inputs(*module)), ElementsAre("w", "c"));
  EXPECT_THAT(inputs_of(module->graph()), ElementsAre("u", "x", "b", "m"));
  EXPECT_EQ(module->tensors()->size(), 1U);
  EXPECT_EQ(module->tensors()->count("b"), 1U);
  EXPECT_TRUE(lint(module->graph()).empty());
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(module->graph().inputs()[i].value->index(), i);
}

TEST(UnusedInputs, UserInputsGoWhereTheCallerWants) {
  auto graph = parse_graph(kText);
  TensorMap tensors = tensors_of_text();
  const auto removed = remove_unused_inputs(*graph, tensors, {.user_inputs = true});
  EXPECT_THAT(targets_of(removed), ElementsAre("u", "w", "c"));
  EXPECT_EQ(removed[0].argument, 0U);
  EXPECT_EQ(removed[0].kind, InputKind::kUser);
  EXPECT_THAT(inputs_of(*graph), ElementsAre("x", "b", "m"));
  EXPECT_EQ(tensors.size(), 1U);
}

TEST(UnusedInputs, PlacesAreThoseBeforeTheRemoval) {
  auto graph = parse_graph(R"(
graph(%a: user "a" f32[2], %w: parameter "w" f32[2], %b: user "b" f32[2], %c: user "c" f32[2]) {
  %y: f32[2] = aten::relu(%b)
  return %y
})");
  TensorMap tensors = {{"w", at::zeros({2})}};
  const auto removed = remove_unused_inputs(*graph, tensors, {.user_inputs = true});
  ASSERT_EQ(removed.size(), 3U);
  EXPECT_EQ(removed[0].argument, 0U);
  EXPECT_EQ(removed[1].index, 1U);
  EXPECT_EQ(removed[2].argument, 2U);
  EXPECT_EQ(removed[2].index, 3U);
}

TEST(UnusedInputs, ATensorThatAnotherInputShowsStays) {
  auto graph = std::make_unique<Graph>();
  Value* read = graph->add_input({.name = "a"}, InputKind::kParameter, "w");
  graph->add_input({.name = "b"}, InputKind::kParameter, "w");
  graph->set_outputs({read}, {GraphOutput{}});
  TensorMap tensors = {{"w", at::zeros({2})}};
  EXPECT_EQ(remove_unused_inputs(*graph, tensors).size(), 1U);
  EXPECT_EQ(graph->inputs().size(), 1U);
  EXPECT_EQ(tensors.count("w"), 1U);
}

constexpr std::string_view kTied = R"(
graph(%w: parameter "w" f32[2, 3], %tied: parameter "tied" f32[2, 3], %other: parameter "other" f32[2, 3],
      %x: user "x" f32[2]) {
  %t: f32[3, 2; 1, 3] = aten::t(%w)
  %v: f32[3, 2; 1, 3] = aten::alias(%t)
  %y: f32[2] = aten::relu(%x)
  return %y
})";

TEST(UnusedInputs, DeadUsersAndOtherNamesOfTheMemoryGoWhereAskedFor) {
  const at::Tensor weight = at::zeros({2, 3});
  const auto module =
      module_from_text(kTied, {{"w", weight}, {"tied", weight.view({2, 3})}, {"other", at::zeros({2, 3})}});
  const auto tensors = module->tensors();
  const auto candidate = named_or_tied(*tensors, {"w"});
  EXPECT_THAT(targets_of(remove_unused_inputs(*module->clone(), {.candidate = candidate})),
              ElementsAre("tied"));
  EXPECT_THAT(targets_of(remove_unused_inputs(*module, {.dead_users = true, .candidate = candidate})),
              ElementsAre("w", "tied"));
  EXPECT_EQ(module->graph().try_value("v"), nullptr);
  EXPECT_THAT(inputs_of(module->graph()), ElementsAre("other", "x"));
}

TEST(UnusedInputs, DeadUsersWithSideEffectsStay) {
  const auto module = module_from_text(R"(
graph(%w: buffer "w" f32[2], %x: user "x" f32[2]) {
  %v: f32[2] = aten::alias(%w)
  %n: f32[2] = aten::add_.Tensor(%v, 1)
  %y: f32[2] = aten::relu(%x)
  return %y
})",
                                       {{"w", at::zeros({2})}});
  EXPECT_TRUE(remove_unused_inputs(*module, {.dead_users = true}).empty());
  EXPECT_EQ(module->graph().nodes().size(), 3U);
}

/// Of this thread, so that other programs do not count.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_for(size_t inputs) {
  Graph graph;
  TensorMap tensors;
  Value* x = graph.add_input({.name = "x"});
  for (size_t i = 0; i < inputs; ++i) {
    const std::string name = "w" + std::to_string(i);
    Value* w = graph.add_input({.name = name}, InputKind::kParameter, name);
    graph.append("aten::t", {{"self", w}}, {{.name = "t" + std::to_string(i)}});
  }
  graph.set_outputs({x}, {GraphOutput{}});
  const double start = processor_seconds();
  EXPECT_EQ(remove_unused_inputs(graph, tensors, {.dead_users = true}).size(), inputs);
  EXPECT_EQ(graph.inputs().size(), 1U);
  return processor_seconds() - start;
}

double least_seconds_for(size_t inputs) {
  return std::min({seconds_for(inputs), seconds_for(inputs), seconds_for(inputs)});
}

TEST(UnusedInputs, TimeGrowsWithTheGraphAndNotWithItsSquare) {
  const double small = least_seconds_for(2000), large = least_seconds_for(32000);
  EXPECT_LT(large, 80 * small) << small;  // 16 times the inputs; a quadratic walk takes 256 times as long
}

}  // namespace
}  // namespace halftone
