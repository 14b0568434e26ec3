#include "graph/aten/aten_parallel_for.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

namespace halftone {

#if !defined(_OPENMP)
#error \
    "at::parallel_for is an inline template: compiled without -fopenmp it would run in one thread, silently"
#endif

int AtenParallelFor::threads() const {
  const int all = at::in_parallel_region() ? 1 : at::get_num_threads();
  return limit_ > 0 ? std::min(limit_, all) : all;
}

void AtenParallelFor::run(int64_t count, SplitTask task) {
  const int64_t workers = std::min<int64_t>(threads(), count);
  if (workers <= 1) {
    for (int64_t i = 0; i < count; ++i) task(i, 0);
    return;
  }
  std::atomic<int64_t> next{0};
  // A worker's number is its index here, not at::get_thread_num(): it is below threads() on every thread.
  at::parallel_for(0, workers, 1, [&](int64_t first, int64_t last) {
    for (int64_t worker = first; worker < last; ++worker) {
      for (int64_t i = next++; i < count; i = next++) task(i, static_cast<int>(worker));
    }
  });
}

}  // namespace halftone
