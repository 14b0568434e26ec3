// Typed functions on tensors as entries of a decomposition table.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Metaprogramming.h>

#include <utility>

#include "autograd/decompositions/op_math.h"
#include "halftone/autograd/decompositions.h"

namespace halftone {

/// What c10 hands to every boxed kernel. Kernels made of typed functions do not look at it.
const c10::OperatorHandle& any_operator();

namespace detail {

template <typename Function>
using SignatureOf = typename c10::guts::infer_function_traits_t<Function>::func_type;

template <typename Function, typename Return, typename... Parameters>
Decomposition box(Function function, Return (*)(Parameters...)) {
  auto kernel = c10::KernelFunction::makeFromUnboxedLambda(
      [function = std::move(function)](Parameters... operands) -> Return { return function(operands...); });
  return [kernel = std::move(kernel)](torch::jit::Stack& stack) {
    kernel.callBoxed(any_operator(), c10::DispatchKeySet(), &stack);
  };
}

template <typename Function, typename Return, typename... Parameters>
auto with_op_math(Function function, Return (*)(Parameters...)) {
  return [function = std::move(function)](Parameters... operands) -> Return {
    OpMath math;
    (math.see(operands), ...);
    return math.lower(function(math.raise(operands)...));
  };
}

}  // namespace detail

/// `function` with c10's own boxing: its parameters must be of the schema's types (double for float,
/// std::string_view for str, std::array<bool, N> for bool[N], at::IntArrayRef for SymInt[], …).
template <typename Function>
Decomposition boxed(Function function) {
  return detail::box(std::move(function), static_cast<detail::SignatureOf<Function>*>(nullptr));
}

/// The same for a function that is given its tensors in the type that ATen's kernels compute in (float for
/// half and bfloat16, OpMath) and whose results are brought back to the operands' common type.
template <typename Function>
Decomposition in_op_math(Function function) {
  using Signature = detail::SignatureOf<Function>;
  return boxed(detail::with_op_math(std::move(function), static_cast<Signature*>(nullptr)));
}

}  // namespace halftone
