// The built-in backends: each file of this folder defines some of them.
#pragma once

#include <vector>

#include "halftone/compile/compilers.h"

namespace halftone {

struct NamedCompiler {
  CompilerInfo info;
  GraphCompiler compiler;
};

std::vector<NamedCompiler> eager_compilers();
std::vector<NamedCompiler> aot_compilers();
std::vector<NamedCompiler> torch_script_compilers();
std::vector<NamedCompiler> halftone_compilers();
/// Those that fail on purpose if a graph has a relu.
std::vector<NamedCompiler> failing_compilers();

}  // namespace halftone
