// Memory of this process, as the kernel counts it.
#pragma once

#include <string>

namespace halftone::bench {

/// The most that was ever resident (VmHWM), in MB of 10⁶ bytes.
double peak_mb();

struct MemoryUse {
  /// Written pages: heap, arenas, copied pages of mapped files. Clean pages of libraries and files are not
  /// counted: the kernel may drop them at any time.
  double private_mb = 0;
  double mapped_mb = 0;  ///< resident pages of `file`
};

/// What is there now. `file`: the end of a mapped file's path.
MemoryUse memory_use(const std::string& file);

}  // namespace halftone::bench
