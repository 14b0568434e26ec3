// `halftone inspect --submodules`: which parts of a model take its time, and which are worth tuning.
#pragma once

#include <memory>

#include "common/inputs.h"
#include "halftone/graph/graph_module.h"

namespace halftone::cli {

class Console;

void inspect_submodules(const std::shared_ptr<const GraphModule>& module, const InputSet& inputs, bool json,
                        Console& console);

}  // namespace halftone::cli
