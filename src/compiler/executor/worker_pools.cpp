#include "compiler/executor/worker_pools.h"

#include <array>
#include <atomic>

namespace halftone::compiler {

namespace {

/// Idle pools. Never destroyed: threads must not be joined while the process winds down.
std::array<std::atomic<ThreadPool*>, 16>& idle_pools() {
  static auto* pools = new std::array<std::atomic<ThreadPool*>, 16>();
  return *pools;
}

}  // namespace

PoolLease::PoolLease(int threads) {
  for (auto& place : idle_pools()) {
    if (place.load(std::memory_order_relaxed) == nullptr) continue;
    pool_.reset(place.exchange(nullptr, std::memory_order_acquire));
    if (pool_ && pool_->threads() == threads) return;
    ThreadPool* expected = nullptr;  // one of another size: back to its place
    if (pool_ && place.compare_exchange_strong(expected, pool_.get(), std::memory_order_release))
      pool_.release();
  }
  pool_ = std::make_unique<ThreadPool>(threads);
}

PoolLease::~PoolLease() {
  for (auto& place : idle_pools()) {
    ThreadPool* expected = nullptr;
    if (place.compare_exchange_strong(expected, pool_.get(), std::memory_order_release,
                                      std::memory_order_relaxed)) {
      pool_.release();
      return;
    }
  }
}

}  // namespace halftone::compiler
