// Names of operations: operators of torch's dispatcher, and the built-ins of the interpreter.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace c10 {
class OperatorHandle;
}

namespace halftone {

/// The dispatcher's operator of that name ("aten::add.Tensor", "aten::linear"), or nullptr. The handle stays
/// valid until the process ends.
const c10::OperatorHandle* try_operator(std::string_view target);

/// A built-in operation that is not in the dispatcher. Operands are positional and unnamed.
///   sym::*                 arithmetic on Python numbers, with Python's rules
///                          (// and % round down, / gives a float)
///   builtin::unpack(list)  the elements of a list; as many outputs as the list has elements
///   builtin::cond(condition, true_graph, false_graph, [operands])
///   builtin::while_loop(condition_graph, body_graph, [carried], [additional])
///   builtin::map(graph, [mapped over dimension 0], [additional])
///   builtin::scan(graph, [init], [scanned over dimension 0], [additional])
///   builtin::getitem(list, index)
/// Subgraphs of built-ins are given as Arguments; they take and give flat operands.
struct Builtin {
  std::string_view name;
  size_t min_operands;
  size_t max_operands;
  int outputs;  ///< -1: any number
};

std::span<const Builtin> builtins();
const Builtin* try_builtin(std::string_view name);

/// What a node calls. Both live for ever, so that nodes need only point there.
struct Target {
  const std::string* name;
  const c10::OperatorHandle* op;  ///< nullptr for built-ins
};

/// The operator or built-in of that name; nothing where there is none.
std::optional<Target> try_target(std::string_view name);

}  // namespace halftone
