// Runs a graph through torch's dispatcher, node by node.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <vector>

#include "halftone/graph/graph.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

/// A graph made ready to run: operands resolved to registers and typed constants, lifetimes known. Immutable,
/// so any number of threads may run it. Each value is freed after its last use. Errors of an operator are
/// thrown as halftone::Error that names node and layer.
class Interpreter {
 public:
  /// Keeps the graph. Throws kInvalidArgument if a constant does not fit the operator's schema.
  explicit Interpreter(std::shared_ptr<const Graph> graph);
  ~Interpreter();

  /// One input for each input of the graph, in order; one output for each output of the graph. `hook` may be
  /// null.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs, const NodeHook* hook = nullptr) const;

  const Graph& graph() const { return *graph_; }

 private:
  struct Operand;
  struct Instruction;
  class Builder;
  class Frame;
  std::shared_ptr<const Graph> graph_;
  std::vector<Instruction> instructions_;
  std::vector<Operand> results_;
  std::vector<bool> input_is_used_;
  size_t register_count_ = 0;
};

/// The interpreter as an executor: looks up the graph's parameters, buffers and constants for each call.
class InterpretedGraph final : public GraphExecutor {
 public:
  explicit InterpretedGraph(std::shared_ptr<const Graph> graph) : interpreter_(std::move(graph)) {}
  std::vector<c10::IValue> run(const ExecutorCall& call) const override;
  const Graph& graph() const override { return interpreter_.graph(); }

 private:
  Interpreter interpreter_;
};

/// One value for each input of the graph: the call's own, the session's state, or the model's tensor.
/// kNotFound for a tensor that is nowhere.
std::vector<c10::IValue> collect_graph_inputs(const Graph& graph, const ExecutorCall& call);

}  // namespace halftone
