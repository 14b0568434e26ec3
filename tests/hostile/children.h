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
  /// Called as soon as an item has failed, so that it is known however the run ends.
  std::function<void(uint64_t, const std::string& why)> failed = [](uint64_t, const std::string&) {};
  /// Called between batches with what is known of all items below `tally.next`; false: no further batch.
  std::function<bool(const Tally& tally)> go_on = [](const Tally&) { return true; };
};

/// Tries items `tally.next` to `end`, a batch of them in each child, and adds what they give to `tally`, in
/// the order of the items: whenever go_on() sees it, it holds every item below `tally.next` and no other.
void try_in_children(Tally& tally, uint64_t end, const ChildrenOptions& options);

}  // namespace halftone::hostile
