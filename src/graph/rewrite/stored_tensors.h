// Tensors that a pass puts beside a graph's own: as inputs of the graph.
#pragma once

#include <string>
#include <string_view>

#include "halftone/graph/graph_module.h"

namespace halftone {

/// Dtype, sizes, strides and device of a stored tensor.
TensorMeta meta_of_tensor(const at::Tensor& tensor);

/// The name of a value for the tensor of that name: `prefix`, then `target` with _ for all but letters and
/// digits.
std::string value_name_for(std::string_view prefix, std::string_view target);

/// A new input that shows the tensor `target`; its value is named after `hint`. The tensor itself goes to
/// whoever keeps the graph's tensors.
Value* add_stored_input(Graph& graph, std::string hint, InputKind kind, std::string target,
                        const at::Tensor& tensor);

}  // namespace halftone
