#include "graph/run/subgraph_ops.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/stack.h>

#include "base/errors.h"
#include "graph/run/interpreter.h"
#include "graph/run/loop_steps.h"

namespace halftone {
namespace {

using Values = std::vector<c10::IValue>;

Values items_of(const c10::IValue& tuple) {
  return tuple.toTupleRef().elements().vec();
}

void append(Values& all, const Values& more) {
  all.insert(all.end(), more.begin(), more.end());
}

bool is_true(const c10::IValue& condition) {
  if (condition.isTensor()) return condition.toTensor().item().toBool();
  return condition.isInt() ? condition.toInt() != 0 : condition.toBool();
}

Values run_cond(const SubgraphCall& call) {
  const Interpreter& branch = *call.graphs.at(is_true(call.operands.at(0)) ? 0 : 1);
  return branch.run(items_of(call.operands.at(1)));
}

Values run_while_loop(const SubgraphCall& call) {
  Values carried = items_of(call.operands.at(0));
  const Values additional = items_of(call.operands.at(1));
  LoopSteps steps;
  while (true) {
    Values inputs = carried;
    append(inputs, additional);
    const Values condition = call.graphs.at(0)->run(inputs);
    if (condition.size() != 1)
      fail(ErrorCode::kInvalidArgument, "the condition of a loop gives {} values", condition.size());
    if (!is_true(condition[0])) return carried;
    steps.take();
    carried = call.graphs.at(1)->run(std::move(inputs));
  }
}

int64_t length_of(const Values& sequences, std::string_view what) {
  if (sequences.empty()) fail(ErrorCode::kInvalidArgument, "{} over nothing", what);
  const int64_t length = sequences[0].toTensor().size(0);
  // The shape of the results is known only from a step that ran.
  if (length == 0) fail(ErrorCode::kGuard, "{} over an empty sequence", what);
  return length;
}

void append_slices(Values& inputs, const Values& sequences, int64_t step) {
  for (const auto& sequence : sequences) inputs.emplace_back(sequence.toTensor().select(0, step));
}

/// Stacks steps[i][k] over i, for each k at or after `first`.
void append_stacked(Values& results, const std::vector<Values>& steps, size_t first) {
  for (size_t k = first; k < steps[0].size(); ++k) {
    std::vector<at::Tensor> slices;
    for (const Values& step : steps) slices.push_back(step.at(k).toTensor());
    results.emplace_back(at::stack(slices));
  }
}

Values run_map(const SubgraphCall& call) {
  const Values mapped = items_of(call.operands.at(0));
  const Values additional = items_of(call.operands.at(1));
  const int64_t length = length_of(mapped, "map");
  std::vector<Values> steps;
  LoopSteps taken;
  for (int64_t i = 0; i < length; ++i) {
    taken.take();
    Values inputs;
    append_slices(inputs, mapped, i);
    append(inputs, additional);
    steps.push_back(call.graphs.at(0)->run(std::move(inputs)));
  }
  Values results;
  append_stacked(results, steps, 0);
  return results;
}

Values run_scan(const SubgraphCall& call) {
  Values carried = items_of(call.operands.at(0));
  const Values scanned = items_of(call.operands.at(1));
  const Values additional = items_of(call.operands.at(2));
  const int64_t length = length_of(scanned, "scan");
  std::vector<Values> steps;
  LoopSteps taken;
  for (int64_t i = 0; i < length; ++i) {
    taken.take();
    Values inputs = carried;
    append_slices(inputs, scanned, i);
    append(inputs, additional);
    steps.push_back(call.graphs.at(0)->run(std::move(inputs)));
    carried.assign(steps.back().begin(), steps.back().begin() + static_cast<std::ptrdiff_t>(carried.size()));
  }
  const size_t first_result = carried.size();
  append_stacked(carried, steps, first_result);
  return carried;
}

}  // namespace

SubgraphFunction try_subgraph_function(std::string_view name) {
  if (name == "builtin::cond") return run_cond;
  if (name == "builtin::while_loop") return run_while_loop;
  if (name == "builtin::map") return run_map;
  if (name == "builtin::scan") return run_scan;
  return nullptr;
}

}  // namespace halftone
