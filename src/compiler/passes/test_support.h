// Shared by the tests of passes: one pass on a graph written as text, and a run with it against a run
// without.
#pragma once

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ops/ops.h"
#include "compiler/passes/passes.h"
#include "graph/run/interpreter.h"
#include "graph/test_support.h"

namespace halftone::compiler {

struct Rewritten {
  std::shared_ptr<Graph> before, after;
  TensorMap tensors_before, tensors;
  std::vector<std::string> log;

  std::string text() const { return print_graph(*after); }
  size_t count(std::string_view target) const {
    size_t found = 0;
    for (const auto& node : after->nodes()) found += node->is(target) ? 1 : 0;
    return found;
  }
};

/// All passes whose names are not given are switched off; none given: all run.
inline Rewritten rewrite(std::string_view text, TensorMap tensors,
                         const std::vector<std::string>& only = {}) {
  register_fused_operators();
  Rewritten result;
  result.before = parse_graph(text);
  result.after = result.before->clone();
  result.tensors_before = result.tensors = std::move(tensors);
  std::vector<std::string> disabled;
  for (const Pass& pass : all_passes()) {
    if (!only.empty() && std::find(only.begin(), only.end(), pass.name) == only.end())
      disabled.push_back(pass.name);
  }
  run_passes(*result.after, result.tensors, {}, disabled, result.log);
  return result;
}

inline std::vector<c10::IValue> run_graph(const std::shared_ptr<Graph>& graph, const TensorMap& tensors,
                                          const std::vector<c10::IValue>& inputs) {
  std::vector<c10::IValue> all;
  size_t next = 0;
  for (const GraphInput& input : graph->inputs())
    all.push_back(input.kind == InputKind::kUser ? inputs.at(next++)
                                                 : c10::IValue(tensors.at(input.target).clone()));
  return Interpreter(graph).run(std::move(all));
}

/// Runs both graphs on the inputs; tolerance 0 asks for the same bits.
inline void expect_same_results(const Rewritten& graphs, const std::vector<c10::IValue>& inputs,
                                double tolerance = 0) {
  const auto expected = run_graph(graphs.before, graphs.tensors_before, inputs);
  const auto actual = run_graph(graphs.after, graphs.tensors, inputs);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const at::Tensor a = actual[i].toTensor(), e = expected[i].toTensor();
    ASSERT_EQ(a.sizes(), e.sizes());
    EXPECT_EQ(a.strides(), e.strides()) << "output " << i;
    const bool same =
        tolerance == 0 ? at::equal(a, e) : at::allclose(a, e, tolerance, tolerance, /*equal_nan=*/true);
    EXPECT_TRUE(same) << "output " << i << "\n" << graphs.text();
  }
}

}  // namespace halftone::compiler
