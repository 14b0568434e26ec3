// `halftone inspect --backend halftone`: what the compiler made of a model.
#pragma once

#include <memory>
#include <vector>

#include "halftone/graph/graph_module.h"

namespace halftone::cli {

class Console;

void inspect_backend(const std::shared_ptr<const GraphModule>& module, const std::vector<c10::IValue>& inputs,
                     bool json, Console& console);

}  // namespace halftone::cli
