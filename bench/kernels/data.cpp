#include "data.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace halftone::bench {
namespace {

struct Generator {
  uint64_t state;
  explicit Generator(uint32_t seed) : state(0x9e3779b97f4a7c15u * (seed + 1)) {}
  uint64_t operator()() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }
};

}  // namespace

std::vector<float> random_floats(int64_t count, uint32_t seed) {
  Generator next(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) {
    const uint64_t r = next();
    constexpr uint64_t kEven = 0x00ff00ff00ff00ff;
    const uint64_t pairs = (r & kEven) + (r >> 8 & kEven);
    const auto sum = static_cast<int64_t>((pairs * 0x0001000100010001) >> 48);
    v = static_cast<float>(sum - 1020) * (1 / 209.02153f);  // √8 times the deviation of a byte
  }
  return values;
}

std::vector<int8_t> random_bytes(int64_t count, int lo, int hi, uint32_t seed) {
  Generator next(seed);
  std::vector<int8_t> values(static_cast<size_t>(count));
  const auto range = static_cast<uint64_t>(hi - lo + 1);
  for (int8_t& v : values) v = static_cast<int8_t>(lo + static_cast<int>((next() >> 32) * range >> 32));
  return values;
}

QuantizedWeights::QuantizedWeights(int64_t n, int64_t k, int64_t g, int most, uint32_t seed) : group(g) {
  const std::vector<float> floats = random_floats(n * k, seed);
  integers.resize(floats.size());
  for (size_t first = 0; first < floats.size(); first += static_cast<size_t>(group)) {
    const size_t end = first + static_cast<size_t>(group);
    float largest = 0;
    for (size_t i = first; i < end; ++i) largest = std::max(largest, std::abs(floats[i]));
    scale.push_back(largest / static_cast<float>(most));
    const float inverse = static_cast<float>(most) / largest;
    for (size_t i = first; i < end; ++i) {
      const float q = floats[i] * inverse;
      integers[i] = static_cast<int8_t>(static_cast<int>(q + (q < 0 ? -0.5f : 0.5f)));
    }
  }
}

Memory allocate(size_t bytes) {
  return Memory(std::aligned_alloc(64, (bytes + 63) / 64 * 64), std::free);
}

int rotations(int64_t weight_bytes) {
  constexpr int64_t kBytes = int64_t{256} << 20;
  return static_cast<int>(std::clamp<int64_t>(kBytes / std::max<int64_t>(weight_bytes, 1), 2, 16));
}

Rotation::Rotation(size_t bytes, const std::function<void(void*)>& pack) {
  copies_.push_back(allocate(bytes));
  pack(copies_[0].get());
  while (static_cast<int>(copies_.size()) < rotations(static_cast<int64_t>(bytes))) {
    copies_.push_back(allocate(bytes));
    std::memcpy(copies_.back().get(), copies_[0].get(), bytes);
  }
}

double linear_error(const std::vector<float>& y, const std::vector<float>& x,
                    const std::function<float(int64_t, int64_t)>& w, const Shape& s) {
  double worst = 0, largest = 0;
  for (int64_t i : {int64_t{0}, s.m - 1}) {
    for (int64_t j = 0; j < s.n; j += std::max<int64_t>(1, s.n / 64)) {
      double sum = 0;
      for (int64_t k = 0; k < s.k; ++k) sum += double{x[static_cast<size_t>(i * s.k + k)]} * w(j, k);
      worst = std::max(worst, std::abs(sum - y[static_cast<size_t>(i * s.n + j)]));
      largest = std::max(largest, std::abs(sum));
    }
  }
  return worst / largest;
}

}  // namespace halftone::bench
