// The threads of native steps, shared by all compiled models of the process.
#pragma once

#include <memory>

#include "cpu/thread_pool.h"

namespace halftone::compiler {

/// A pool of exactly `threads` threads for one run; handed back for the next one. Taking one takes no lock;
/// pools are made when there is none.
class PoolLease {
 public:
  explicit PoolLease(int threads);
  ~PoolLease();
  PoolLease(const PoolLease&) = delete;
  PoolLease& operator=(const PoolLease&) = delete;
  ParallelFor& parallel_for() { return *pool_; }

 private:
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace halftone::compiler
