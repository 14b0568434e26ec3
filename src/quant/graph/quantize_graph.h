// Shared by quantize_ on graphs and diagnose.
#pragma once

#include <cstdint>
#include <memory>

#include "halftone/graph/graph_module.h"

namespace halftone {

/// Of all tensors; those that share memory count once.
int64_t bytes_of_tensors(const TensorMap& tensors);

}  // namespace halftone
