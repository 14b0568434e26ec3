#include "reads.h"

#include <atomic>
#include <cstring>

#include "data.h"
#include "kernels/peaks/peaks.h"

namespace halftone::bench {
namespace {

constexpr int64_t kCall = int64_t{16} << 20, kCalls = 12, kPieces = 16;

const char* buffer() {
  static const Memory memory = [] {
    Memory all = allocate(kCall * kCalls);
    std::memset(all.get(), 1, kCall * kCalls);
    return all;
  }();
  return static_cast<const char*>(memory.get());
}

}  // namespace

Candidate reads_candidate(ParallelFor& parallel_for) {
  Candidate c;
  c.label = c.kernel = kReads;
  c.ours = false;
  c.bytes = kCall;
  c.error = [] { return 0.0; };
  c.run = [&parallel_for, data = buffer()](int turn) {
    std::atomic<int64_t> sink{0};
    const char* first = data + turn % kCalls * kCall;
    parallel_for.run(kPieces, [&](int64_t i, int) {
      sink += kernels::read_memory(first + i * (kCall / kPieces), kCall / kPieces);
    });
  };
  return c;
}

}  // namespace halftone::bench
