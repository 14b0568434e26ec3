// Trials in child processes: a crash, an abort of a sanitizer or a hang is the result of one file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tally.h"

namespace halftone::hostile {

struct ChildrenOptions {
  size_t jobs = 1;                               ///< children at a time
  std::string folder;                            ///< for what they write to stderr; theirs alone
  std::function<std::string(uint64_t)> file_of;  ///< called in the child: makes or names the file of an item
  std::function<void(uint64_t)> done_with;       ///< called in the child when the item was tried
  std::function<bool(const Tally&)> go_on;       ///< called between batches
};

/// Tries items `begin` to `end`, a batch of them in each child.
Tally try_in_children(uint64_t begin, uint64_t end, const ChildrenOptions& options);

}  // namespace halftone::hostile
