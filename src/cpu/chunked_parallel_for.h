// Many small pieces of work as fewer tasks.
#pragma once

#include <algorithm>

#include "cpu/parallel_for.h"

namespace halftone {

/// Calls work(first, last) for stretches of `chunk` of the pieces [0, pieces), on the ParallelFor's threads; at
/// once if there is only one. Chunks make a task worth its start.
template <typename Stretch>
void chunked_parallel_for(ParallelFor& parallel_for, int64_t pieces, int64_t chunk, const Stretch& work) {
  chunk = std::clamp<int64_t>(chunk, 1, std::max<int64_t>(1, pieces));
  const int64_t tasks = (pieces + chunk - 1) / chunk;
  if (tasks == 1) return work(int64_t{0}, pieces);
  parallel_for.run(tasks,
                   [&](int64_t task, int) { work(task * chunk, std::min(pieces, (task + 1) * chunk)); });
}

}  // namespace halftone
