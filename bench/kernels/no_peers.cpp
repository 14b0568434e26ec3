// Built without torch: no peers, and threads of our own.
#include "candidate.h"
#include "cpu/thread_pool.h"

namespace halftone::bench {

std::vector<Candidate> peer_candidates(const Case&) {
  return {};
}

std::unique_ptr<ParallelFor> make_parallel_for(int threads) {
  return std::make_unique<ThreadPool>(threads);
}

}  // namespace halftone::bench
