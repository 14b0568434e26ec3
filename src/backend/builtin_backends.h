// The built-in backends: each file of this folder defines some of them.
#pragma once

#include <vector>

#include "halftone/backend.h"

namespace halftone {

struct NamedCompiler {
  BackendInfo info;
  GraphCompiler compiler;
};

std::vector<NamedCompiler> eager_backends();
std::vector<NamedCompiler> aot_backends();
std::vector<NamedCompiler> torch_script_backends();
std::vector<NamedCompiler> halftone_backends();
/// Those that fail on purpose if a graph has a relu.
std::vector<NamedCompiler> failing_backends();

}  // namespace halftone
