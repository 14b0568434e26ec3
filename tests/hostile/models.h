// The text of the seeds' graphs. Metas are filled in by running them.
#pragma once

#include <memory>
#include <vector>

#include "halftone/graph/graph_module.h"

namespace halftone::hostile {

/// Small models of many kinds, with tensors and sample inputs.
std::vector<std::shared_ptr<GraphModule>> make_models();

}  // namespace halftone::hostile
