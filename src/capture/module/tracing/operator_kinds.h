// Properties of operators that a capture needs before it records a call: is it pure, and if not, what is its
// pure form?
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <vector>

namespace halftone {

/// Answers from sizes, strides and dtypes alone: nothing to record.
bool reads_metadata_only(const c10::OperatorHandle& op);

/// Gives a number or a boolean that was computed from tensors' elements.
bool gives_number_from_data(const c10::OperatorHandle& op);

/// The result's size depends on tensors' elements in this call.
bool gives_size_from_data(const c10::OperatorHandle& op, const std::vector<c10::IValue>& args);

/// May draw from the default generator, as this call switches its dropout: whether it does is seen when it
/// has run.
bool may_draw(const c10::OperatorHandle& op, const std::vector<c10::IValue>& args);

/// Draws from a generator that the call names.
bool names_generator(const std::vector<c10::IValue>& args);

/// Batch norm in training writes running statistics, and its schema does not say so.
bool updates_statistics(const c10::OperatorHandle& op, const std::vector<c10::IValue>& args);

/// Changes sizes or strides of its operand, not the elements.
bool changes_geometry(const c10::OperatorHandle& op);

/// The operator that computes what this one writes: add for add_, and for add.out. `written`: which operands
/// of the writing one take the results, in order; they are missing among the pure one's operands where it is
/// an out variant.
struct PureForm {
  c10::OperatorHandle op;
  std::vector<size_t> written;
  bool drops_written = false;
};
std::optional<PureForm> try_pure_form(const c10::OperatorHandle& op);

/// "aten::add.Tensor"
std::string target_of(const c10::OperatorHandle& op);

}  // namespace halftone
