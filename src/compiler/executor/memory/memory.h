// Layout of buffers in the arena: no two that are alive at the same time overlap.
#pragma once

#include <cstddef>
#include <vector>

namespace halftone::compiler {

struct Lifetime {
  size_t bytes = 0;
  int first = 0;  ///< the step that writes it first
  int last = 0;   ///< the last step that touches it
};

struct ArenaLayout {
  std::vector<size_t> offsets;  ///< one for each lifetime, multiples of kArenaAlignment
  size_t bytes = 0;
};

inline constexpr size_t kArenaAlignment = 64;

/// Largest first, each at the lowest offset that is free during its lifetime. Deterministic.
ArenaLayout lay_out(const std::vector<Lifetime>& lifetimes);

}  // namespace halftone::compiler
