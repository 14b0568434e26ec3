// Random choices that a number repeats: the same seed gives the same file on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace halftone::hostile {

/// Sums that wrap: attackers do not mind.
inline int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t wrapping_negate(int64_t a) {
  return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

  uint64_t next() {  // splitmix64
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// 0 to count - 1; 0 if count is 0.
  size_t pick(size_t count) { return count == 0 ? 0 : next() % count; }
  bool chance(size_t percent) { return pick(100) < percent; }
  template <typename T>
  const T& one_of(const std::vector<T>& items) {
    return items[pick(items.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace halftone::hostile
