// One thing to time in a case: ours or a peer's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cpu/splitter.h"

namespace halftone::bench {

struct Shape {
  int64_t m, n, k;
};

/// Which multiply-add sequence bounds a contender.
enum class Peak { kNone, kChain, kExact8, kFma };

struct Contender {
  std::string name;
  Peak peak = Peak::kNone;
  int64_t weight_bytes = 0;           ///< read once a call
  std::function<void(int turn)> run;  ///< `turn` rotates the weights
  /// Largest difference to the expected result relative to the largest expected value, from one run before
  /// timing; negative: no answer.
  std::function<double()> error;
};

/// Distinct weights used in turn, so that weights come from memory where a real model's would: 96 MB in all,
/// at most 16.
int rotations(int64_t weight_bytes);

std::vector<Contender> our_contenders(const Shape& shape, Splitter& splitter);

/// The peers through ATen, where the benchmark is built with torch; else nothing.
std::vector<Contender> peer_contenders(const Shape& shape, int threads);

}  // namespace halftone::bench
