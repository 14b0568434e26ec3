// Constants of a graph as the IValues that an operator's schema asks for.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <vector>

#include "halftone/graph.h"

namespace halftone {

/// The scalar constant as an IValue of `type` (nullptr: as it is). An int becomes a float where the schema
/// says float. Throws kInvalidArgument if the type cannot hold it. Not for values, lists and subgraphs.
c10::IValue constant_to_ivalue(const Argument& constant, const c10::TypePtr& type);

/// A number as the 0-dimensional tensor that eager makes of it where an operator wants a tensor: it does not
/// raise the other operand's dtype.
c10::IValue number_to_tensor(const c10::IValue& number);

/// The elements as the list that `type` says (int[], Tensor[], Tensor?[], float[], …); a tuple where `type`
/// is nullptr.
c10::IValue list_to_ivalue(std::vector<c10::IValue> items, const c10::TypePtr& type);

/// The element type of a list type, also inside an optional; nullptr if it is not a list.
c10::TypePtr element_type(const c10::TypePtr& type);

}  // namespace halftone
