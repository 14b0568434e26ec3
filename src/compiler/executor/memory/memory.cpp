// Lays buffers out in the arena. Finding the smallest arena is NP-hard; placing the largest buffers first,
// each at the lowest free offset, comes near to the lower bound for the chains that networks are. It is
// quadratic in the number of buffers and runs once for each plan.
#include "compiler/executor/memory/memory.h"

#include <algorithm>
#include <numeric>

namespace halftone::compiler {

namespace {

size_t aligned(size_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

bool overlap(const Lifetime& a, const Lifetime& b) {
  // Both ends count: a step may read one buffer while it writes the other.
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

ArenaLayout lay_out(const std::vector<Lifetime>& lifetimes) {
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  ArenaLayout layout;
  layout.offsets.assign(lifetimes.size(), 0);
  std::vector<size_t> placed;  // sorted by offset
  for (const size_t each : order) {
    const size_t bytes = aligned(lifetimes[each].bytes);
    size_t offset = 0;
    // By rising offsets, so the first gap that is large enough is the lowest one.
    for (const size_t other : placed) {
      if (!overlap(lifetimes[each], lifetimes[other])) continue;
      if (offset + bytes <= layout.offsets[other]) break;  // fits before it
      offset = std::max(offset, layout.offsets[other] + aligned(lifetimes[other].bytes));
    }
    layout.offsets[each] = offset;
    layout.bytes = std::max(layout.bytes, offset + bytes);
    const auto place = std::upper_bound(placed.begin(), placed.end(), each, [&](size_t a, size_t b) {
      return layout.offsets[a] < layout.offsets[b];
    });
    placed.insert(place, each);
  }
  return layout;
}

}  // namespace halftone::compiler
