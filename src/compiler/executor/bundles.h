// Many small pieces of work as fewer tasks.
#pragma once

#include <algorithm>

#include "cpu/splitter.h"

namespace halftone::compiler {

/// Calls work(first, last) for stretches of `bundle` of the pieces [0, pieces), on the splitter's threads; at
/// once if there is only one. Bundles make a task worth its start.
template <typename Stretch>
void run_in_bundles(Splitter& splitter, int64_t pieces, int64_t bundle, const Stretch& work) {
  bundle = std::clamp<int64_t>(bundle, 1, std::max<int64_t>(1, pieces));
  const int64_t tasks = (pieces + bundle - 1) / bundle;
  if (tasks == 1) return work(int64_t{0}, pieces);
  splitter.run(tasks, [&](int64_t task, int) { work(task * bundle, std::min(pieces, (task + 1) * bundle)); });
}

}  // namespace halftone::compiler
