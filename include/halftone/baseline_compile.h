// Compiles under BaselineOptions: captured graphs, and C++ modules at their first call.
#pragma once

#include <memory>

#include "halftone/baseline.h"
#include "halftone/compile.h"
#include "halftone/compile_module.h"

namespace halftone {

/// compile() with what the options ask for: rewrites of what is off, passes left out, searches, the cache.
std::shared_ptr<const CompiledModel> baseline_compile(std::shared_ptr<const GraphModule> module,
                                                      const BaselineOptions& options);

/// The options of compile(module) that mean the same.
CompileModuleOptions baseline_module_options(const BaselineOptions& options);

}  // namespace halftone
