// The clock of measurements. With one thread it is that thread's processor time: a neighbour on a shared
// machine then costs cache lines, not time slices. With more threads only the wall clock means something.
#pragma once

#include <ctime>

namespace halftone::kernels {

inline double seconds(int threads) {
  timespec t{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace halftone::kernels
