// Declared sizes and dtypes are claims: here they are compared with what the operators compute.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "halftone/graph/graph_module.h"

namespace halftone {

/// Asks each node of the graph, in order, for the sizes and dtypes of its results. kInvalidArgument, naming
/// node and layer: a result is declared otherwise (both shapes are in the message); an operator refuses its
/// operands whatever their data; a result needs more memory than the machine has. Nothing is computed or
/// allocated. `inputs`: one for each user input; `bindings`: as InputCheck gives them.
///
/// Subgraphs of cond, while_loop, map and scan are checked with the sizes of the operands that they get, also
/// those that a call may not reach. Operators without a meta function and sizes that depend on data are
/// trusted here; the code that runs them compares.
void check_shapes(const GraphModule& module, const std::vector<c10::IValue>& inputs,
                  const SymbolBindings& bindings);

/// The same with the module's sample inputs. If there are none, what depends on the sizes of inputs is
/// left out.
void check_shapes(const GraphModule& module);

/// "float [2, 3]": of messages.
std::string describe_tensor(const at::Tensor& tensor);

/// Nothing if the computed result is as declared under `bindings` or nothing is declared that can be
/// evaluated; else what is wrong: "is declared as float [2, 4], the operator gives float [2, 3]".
std::string difference_from_declared(const Value& declared, const at::Tensor& computed,
                                     const SymbolBindings& bindings);

}  // namespace halftone
