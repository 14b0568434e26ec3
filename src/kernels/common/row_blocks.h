// Cutting rows into blocks of at most a kernel's height, as even as possible: 8 rows for a kernel of 6 are 4
// and 4, not 6 and 2.
#pragma once

#include <cstdint>

namespace halftone::kernels {

struct RowBlocks {
  RowBlocks(int64_t m, int64_t tallest) : m_(m), count_((m + tallest - 1) / tallest) {}
  int64_t count() const { return count_; }
  /// First row of block b; begin(count()) is m.
  int64_t begin(int64_t b) const {
    return count_ == 0 ? 0 : m_ / count_ * b + (b < m_ % count_ ? b : m_ % count_);
  }

 private:
  int64_t m_;
  int64_t count_;
};

}  // namespace halftone::kernels
