// Executors without gradients say so where some are asked for.
#pragma once

#include <memory>

#include "halftone/graph/graph_module.h"

namespace halftone {

/// The executor of the module's graph; a call whose inputs or parameters need gradients, with grad mode on,
/// is kUnsupported.
std::shared_ptr<const GraphExecutor> refuse_gradients(const GraphModule& module,
                                                      std::shared_ptr<const GraphExecutor> executor);

}  // namespace halftone
