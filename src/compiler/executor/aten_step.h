// A step that the dispatcher runs: every operator that has no native kernel here.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <vector>

#include "compiler/executor/planner.h"
#include "graph/operators/operand_guards.h"

namespace halftone::compiler {

struct AtenOutput {
  Slot slot;              ///< of kind kDynamic; undefined for results without a reader, or None
  bool in_place = false;  ///< the slot is that of an operand, which the operator writes to
};

class AtenStep final : public Step {
 public:
  AtenStep(const c10::OperatorHandle& op, std::vector<StepOperand> operands, std::vector<AtenOutput> outputs,
           const char* name = "aten")
      : op_(op),
        guard_(try_operand_guard(op)),
        operands_(std::move(operands)),
        outputs_(std::move(outputs)),
        name_(name) {}
  void run(Frame& frame) const override;
  std::string kernel() const override { return name_; }

 private:
  c10::OperatorHandle op_;
  OperandGuard guard_;
  std::vector<StepOperand> operands_;
  std::vector<AtenOutput> outputs_;
  const char* name_;
};

/// The slot as a tensor on the frame's memory. Borrows the memory where the slot lies in the arena.
at::Tensor tensor_at(const Slot& slot, const Frame& frame);

}  // namespace halftone::compiler
