// The backends that are there from the start: each file of this room gives those it defines.
#pragma once

#include <vector>

#include "halftone/backend.h"

namespace halftone {

struct Backend {
  BackendInfo info;
  GraphCompiler compiler;
};

std::vector<Backend> eager_backends();
std::vector<Backend> aot_backends();
std::vector<Backend> torch_script_backends();
std::vector<Backend> halftone_backends();
/// Those that fail on purpose where a graph has a relu.
std::vector<Backend> failing_backends();

}  // namespace halftone
