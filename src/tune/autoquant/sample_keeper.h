// Calls that calibration keeps for validation and for the final comparison: some of each shape, whatever their number.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "halftone/graph/sample.h"

namespace halftone::aq {

class SampleKeeper {
 public:
  struct Kept {
    std::vector<int64_t> signature;  ///< sizes and dtypes of all tensors
    Sample sample;                   ///< empty if there is no room for one more
  };
  /// A copy, for add(), where there is room for it.
  Kept copy(const Sample& sample) const;
  void add(Kept kept);

  int64_t calls() const { return calls_; }
  std::vector<Sample> samples() const;  ///< in the order of the calls
  int64_t calls_of_shape(const Sample& sample) const;
  /// How many calls a kept one stands for. At least 1.
  int64_t weight_of(const Sample& sample) const;

 private:
  struct Shape {
    int64_t calls = 0;
    int64_t kept = 0;
  };
  std::map<std::vector<int64_t>, Shape> shapes_;
  std::vector<Sample> samples_;
  int64_t calls_ = 0;
};

}  // namespace halftone::aq
