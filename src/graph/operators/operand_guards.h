// Checks that some operators of ATen lack: with wrong operands they read outside their tensors or trap.
// Exported models call them, so that they cannot be refused in files; their operands are looked at before
// each call instead.
#pragma once

#include <ATen/core/stack.h>

namespace c10 {
class OperatorHandle;
}

namespace halftone {

/// Throws kInvalidArgument if ATen would not answer with an error. The stack is what the operator will be
/// called with.
using OperandGuard = void (*)(const torch::jit::Stack& stack);

/// nullptr for operators that check their operands themselves: nearly all.
OperandGuard try_operand_guard(const c10::OperatorHandle& op);

/// Those of them that look at sizes and numbers only, and are needed for tensors without data too.
OperandGuard try_size_guard(const c10::OperatorHandle& op);

}  // namespace halftone
