// Unstable: for the command line only, may change in any version.
// The kernels of this build, those that this machine runs, and the reasons for the kernel of a linear.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"

namespace halftone {

struct KernelInfo {
  std::string operation;        ///< "int8_linear"
  std::string name;             ///< spells operation, types, tile and instruction set
  std::string instruction_set;  ///< "scalar", "avx2", "avx512vnni"
  bool runs_here = false;       ///< the machine has it and HALFTONE_ISA does not cap it away
};

/// Every kernel, operation by operation, best first.
HALFTONE_API std::vector<KernelInfo> list_kernels();

struct KernelChoice {
  std::string name;
  bool chosen = false;
  std::string reason;  ///< why it was not chosen; empty for the chosen one
};

/// The kernels of a scheme's operation for an m x n x k linear (m rows of activations, n outputs), best
/// first. Any name of schemes(), and int8static and int8static-7bit. kInvalidArgument for an unknown scheme,
/// listing those there are; kUnsupported for autoquant, which has no kernels of its own.
HALFTONE_API std::vector<KernelChoice> explain_kernels(int64_t m, int64_t n, int64_t k,
                                                       std::string_view scheme);

/// The instruction set that kernels are chosen for: the machine's, capped by the environment's HALFTONE_ISA.
/// Throws if that names no level or one that the machine lacks.
HALFTONE_API std::string active_instruction_set();

}  // namespace halftone
