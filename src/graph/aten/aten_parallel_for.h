// A ParallelFor on ATen's own threads: kernels of Halftone and of PyTorch share one pool and one
// at::set_num_threads().
#pragma once

#include "cpu/parallel_for.h"

namespace halftone {

/// Stateless; make one where it is needed. Indices are claimed one by one, so uneven tasks balance. Inside a
/// parallel region of ATen's it has one thread.
class AtenParallelFor final : public ParallelFor {
 public:
  /// `limit`: at most so many threads; 0: as many as ATen has.
  explicit AtenParallelFor(int limit = 0) : limit_(limit) {}
  int threads() const override;
  void run(int64_t count, SplitTask task) override;

 private:
  int limit_;
};

}  // namespace halftone
