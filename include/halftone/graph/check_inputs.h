// Do inputs fit a model? The check that every call of a session makes, without the call.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include "halftone/base/api.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

/// `inputs`: flat, in the order of GraphModule::input_names(). kGuard, with the input's name, the dimension,
/// what was expected and found, where a dtype, rank, size, range or guard is not what the model was exported
/// for.
HALFTONE_API void check_inputs(const GraphModule& module, const std::vector<c10::IValue>& inputs);

}  // namespace halftone
