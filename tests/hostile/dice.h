// Random choices that a number repeats: the same seed gives the same file on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace halftone::hostile {

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

  uint64_t next() {  // splitmix64
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// 0 to count - 1; 0 where count is 0.
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
