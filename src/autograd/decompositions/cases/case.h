// Calls of the operators that have decompositions: what every test of them runs over.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>
#include <vector>

namespace halftone {

/// One call: operands as the operator's schema has them.
struct Case {
  std::string op;  ///< "aten::elu"
  torch::jit::Stack operands;
  at::ScalarType type = at::kDouble;  ///< of the operands with floating point
  /// Results are differences of sums: their errors are those of the largest.
  bool sums = false;

  c10::OperatorHandle handle() const;
  std::string describe() const;  ///< "aten::elu(BFloat16 [3, 4], 1, 1, 1)"
};

class CaseList {
 public:
  /// A call in double, float and bfloat16; operands that are left out have the schema's defaults.
  void add(const std::string& op, torch::jit::Stack operands, bool sums = false);
  /// The same without half precision: for operators that have none on CPUs.
  void add_wide(const std::string& op, torch::jit::Stack operands, bool sums = false);
  /// The operands as they are: for calls with mixed types.
  void add_exact(const std::string& op, torch::jit::Stack operands, bool sums = false);

  const std::vector<Case>& cases() const { return cases_; }

 private:
  void add_in(at::ScalarType type, const std::string& op, const torch::jit::Stack& operands, bool sums);
  std::vector<Case> cases_;
};

/// Of all entries of core_decompositions(), with the same numbers at each call.
std::vector<Case> all_cases();

void add_activation_cases(CaseList& list);
void add_basic_cases(CaseList& list);
void add_loss_cases(CaseList& list);
void add_norm_cases(CaseList& list);
void add_other_cases(CaseList& list);

}  // namespace halftone
