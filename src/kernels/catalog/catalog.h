// Every kernel of every operation, and why a linear gets the one it gets: what `halftone kernels [--explain
// …]` prints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/isa.h"
#include "kernels/common/kernel_table.h"

namespace halftone::kernels {

struct CatalogEntry {
  std::string_view operation;
  const char* name;
  Isa isa;
};

/// All tables, operation by operation, each best first.
std::vector<CatalogEntry> kernel_catalog();

/// The schemes that explain_linear takes: those of base/scheme_table.h that a kernel runs, by all names.
std::vector<std::string> linear_schemes();

/// What became of each kernel of the scheme's operation for an m x n x k linear at `isa`. int4 schemes may
/// end in a colon and their group size. Throws kInvalidArgument for an unknown scheme, naming those there
/// are, and kUnsupported for one that no kernel runs.
std::vector<KernelVerdict> explain_linear(int64_t m, int64_t n, int64_t k, std::string_view scheme,
                                          Isa isa = active_isa());

}  // namespace halftone::kernels
