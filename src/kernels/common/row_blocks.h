// Cutting rows into blocks of at most a kernel's height, as even as possible: 8 rows for a kernel of 6 are 4
// and 4, not 6 and 2.
#pragma once

#include <cstdint>

namespace halftone::kernels {

struct RowBlocks {
  RowBlocks(int64_t m, int64_t tallest)
      : count_((m + tallest - 1) / tallest),
        rows_(count_ == 0 ? 0 : m / count_),
        taller_(count_ == 0 ? 0 : m % count_) {}
  int64_t count() const { return count_; }
  /// First row of block b; begin(count()) is m. No division: it is asked for every tile.
  int64_t begin(int64_t b) const { return rows_ * b + (b < taller_ ? b : taller_); }
  int rows(int64_t b) const { return static_cast<int>(rows_ + (b < taller_)); }

 private:
  int64_t count_;
  int64_t rows_;    // of most blocks
  int64_t taller_;  // so many have one more
};

}  // namespace halftone::kernels
