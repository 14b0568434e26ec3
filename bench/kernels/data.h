// Inputs of the benchmark: random numbers, weights packed once and copied, and the check of an answer.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "contender.h"

namespace halftone::bench {

/// Roughly normal, mean 0, deviation 1: a sum of four uniform numbers. Fast, because cases have 45 million
/// weights.
std::vector<float> random_floats(int64_t count, uint32_t seed);

/// Uniform in [lo, hi].
std::vector<int8_t> random_bytes(int64_t count, int lo, int hi, uint32_t seed);

using Memory = std::unique_ptr<void, void (*)(void*)>;
Memory allocate(size_t bytes);  ///< aligned to 64

/// Packed weights and copies of them, used in turn.
class Rotation {
 public:
  Rotation(size_t bytes, const std::function<void(void*)>& pack);
  const void* at(int turn) const { return copies_[static_cast<size_t>(turn) % copies_.size()].get(); }

 private:
  std::vector<Memory> copies_;
};

/// Compares the first and the last row of y, in 64 columns, with double-precision sums.
double linear_error(const std::vector<float>& y, const std::vector<float>& x,
                    const std::function<float(int64_t n, int64_t k)>& w, const Shape& shape);

}  // namespace halftone::bench
