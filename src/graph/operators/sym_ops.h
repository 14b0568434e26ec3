// Arithmetic on Python numbers, as size computations of a graph need it.
#pragma once

#include <ATen/core/ivalue.h>

#include <span>
#include <string_view>

namespace halftone {

using SymFunction = c10::IValue (*)(std::span<const c10::IValue> operands);

/// The implementation of a "sym::…" built-in, or nullptr. Operands are int, float or bool; integer results
/// that do not fit 64 bits and divisions by zero throw kInvalidArgument.
SymFunction try_sym_function(std::string_view name);

}  // namespace halftone
