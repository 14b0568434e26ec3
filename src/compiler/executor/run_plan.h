// One call through a plan: tensors in, steps, tensors out. Allocates nothing but results, and not those where
// the caller brings them (ATen steps may allocate).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "compiler/executor/plan.h"
#include "halftone/graph/graph_module.h"

namespace halftone::compiler {

/// Where an input of the rewritten graph comes from.
struct InputSource {
  bool user = false;
  size_t user_index = 0;  ///< of a user input
  std::string target;     ///< of the others: the tensor's name
  at::Tensor own;         ///< of the others: the model's tensor
  bool constant = false;  ///< no run writes it
};

/// The inputs of one call, found where they are instead of collected.
class CallInputs {
 public:
  CallInputs(const std::vector<InputSource>& sources, const std::vector<c10::IValue>& user,
             const TensorMap& state)
      : sources_(sources), user_(user), state_(state) {}

  size_t size() const { return sources_.size(); }
  bool is_constant(size_t index) const { return sources_[index].constant; }
  /// nullptr: input `index` is tensor(index).
  const c10::IValue* number(size_t index) const;
  const at::Tensor& tensor(size_t index) const;
  /// Whether a run may write to the tensor: it is the session's, and the caller gave no tensor on its memory.
  bool is_own_state(size_t index) const;
  std::vector<c10::IValue> collect() const;

 private:
  const std::vector<InputSource>& sources_;
  const std::vector<c10::IValue>& user_;
  const TensorMap& state_;
};

/// `threads`: no more than the plan was made for.
std::vector<c10::IValue> run_plan(const Plan& plan, const CallInputs& inputs, int threads,
                                  const NodeHook* hook);

/// The same with results written to `outputs`: one for each result, undefined if that is not a tensor.
/// kInvalidArgument if dtype, sizes or device are others; outputs that overlap an input or each other are
/// copied to at the end.
void run_plan_into(const Plan& plan, const CallInputs& inputs, int threads,
                   const std::vector<at::Tensor>& outputs);

/// Results of another way of running, to tensors of the caller: the same checks.
void copy_results(std::vector<c10::IValue> results, const std::vector<at::Tensor>& outputs);

}  // namespace halftone::compiler
