// Built without torch: no peers, and threads of our own.
#include "contender.h"
#include "cpu/thread_pool.h"

namespace halftone::bench {

std::vector<Contender> peer_contenders(const Case&) {
  return {};
}

std::unique_ptr<Splitter> make_splitter(int threads) {
  return std::make_unique<ThreadPool>(threads);
}

}  // namespace halftone::bench
