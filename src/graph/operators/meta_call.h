// Asking an operator for its results' sizes and dtypes: it is called with tensors that have no data.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "halftone/graph/graph.h"

namespace halftone {

/// What an operator says of its results.
struct MetaAnswer {
  enum class Kind {
    kKnown,
    kUnknown,  ///< it has no meta function, or its sizes depend on data
    kRefused,  ///< with any data it would refuse these operands too; `reason` is its message
  };
  Kind kind = Kind::kUnknown;
  std::vector<c10::IValue> results;  ///< of kKnown: tensors on the meta device, numbers, lists
  std::string reason;                ///< of kRefused
};

/// Calls the node's operator with `operands` (one for each argument of the schema, tensors on the meta
/// device). The CPU as a device counts as the meta device, so that nothing is allocated. Operators that
/// write to operands change their sizes if they would with data (squeeze_); operators with other side
/// effects are not called. libtorch has no meta functions in C++ for some operators that native steps exist
/// for; their sizes are computed here.
MetaAnswer ask_operator(const Node& node, std::vector<c10::IValue> operands);

/// Whether the operator writes to one of its operands, by its schema.
bool writes_to_operand(const Node& node);

/// kInvalidArgument if the tensor's memory, from its first element to its last, would be more than the
/// machine has, or a product of its sizes does not fit 64 bits.
void require_memory_for(const at::Tensor& tensor);

/// Of the machine, in bytes.
size_t machine_memory();

}  // namespace halftone
