// Operands of a traced call as operands of a node.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <vector>

#include "halftone/graph/graph.h"

namespace halftone {

/// Finds the value that stands for a tensor.
using TensorLookup = std::function<Argument(const at::Tensor&)>;

/// One operand; `type` is the schema's. kUnsupported for what a graph cannot hold (generators, storages,
/// objects).
Argument to_argument(const c10::IValue& value, const c10::TypePtr& type, const TensorLookup& lookup);

/// The call's operands by their schema names, those left out that equal the schema's default.
std::vector<NamedArgument> to_arguments(const c10::FunctionSchema& schema,
                                        const std::vector<c10::IValue>& values, const TensorLookup& lookup);

/// Calls `visit` for every defined tensor in the value, also inside lists.
void for_each_tensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit);

}  // namespace halftone
