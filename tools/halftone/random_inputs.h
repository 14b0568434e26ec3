// Made-up inputs of given shapes.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/graph_module.h"

namespace halftone::cli {

/// Flat inputs of a call. `shapes`: "ids:1x128,mask:1x128"; inputs that it does not name have the size that
/// the graph declares, or that of the sample inputs. The same values for the same seed. UsageError for text
/// that is not a list of shapes, for unknown and repeated names, and if a size is not known.
std::vector<c10::IValue> random_inputs(const GraphModule& module, const std::string& shapes, uint64_t seed);

}  // namespace halftone::cli
