// Inputs of the benchmark: random numbers, weights packed once and copied, and the check of an answer.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "candidate.h"

namespace halftone::bench {

/// Roughly normal, mean 0, deviation 1, at most 4.9: a sum of eight bytes. Fast, because cases have 45
/// million weights.
std::vector<float> random_floats(int64_t count, uint32_t seed);

/// Uniform in [lo, hi].
std::vector<int8_t> random_bytes(int64_t count, int lo, int hi, uint32_t seed);

/// Normal weights [n][k], quantized as a real layer's are: `group` neighbours along k share a scale, by which
/// the largest of them becomes `most`. Uniform integers would be harder than any layer is: how far they are
/// from the ends of their range decides which sums a kernel may prove to fit 16 bits.
struct QuantizedWeights {
  std::vector<int8_t> integers;  ///< [n][k]
  std::vector<float> scale;      ///< [n][k / group]
  int64_t group = 1;

  QuantizedWeights() = default;
  QuantizedWeights(int64_t n, int64_t k, int64_t group, int most, uint32_t seed);
  float at(size_t i) const { return scale[i / static_cast<size_t>(group)] * integers[i]; }
};

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
