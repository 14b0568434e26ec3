#include "quant/observer/histogram.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sum.h>
#include <c10/util/generic_math.h>

#include <algorithm>
#include <limits>

namespace halftone {
namespace {

constexpr int64_t kFiner = 16;      // parts of a bin while a histogram is moved to other bins
constexpr double kQuantile = 1e-5;  // given up in one step

/// density × ∫ x² from begin to end.
float squared_error(float begin, float end, float density) {
  return density * ((end * end * end - begin * begin * begin) / 3.0F);
}

/// What quantizing to `levels` between two bins costs. Every product and sum is rounded to float where
/// torch.ao's tensors are; the file is compiled without contraction.
class RangeError {
 public:
  RangeError(const at::Tensor& histogram, float min, float max, int64_t levels)
      : histogram_(histogram),
        errors_(at::empty_like(histogram)),
        bins_(histogram.numel()),
        levels_(levels),
        bin_width_((static_cast<double>(max) - static_cast<double>(min)) / static_cast<double>(bins_)) {}

  double between(int64_t first, int64_t last) {
    const double level_width =
        bin_width_ * static_cast<double>(last - first + 1) / static_cast<double>(levels_);
    if (level_width == 0) return 0;
    const float width = static_cast<float>(bin_width_), level = static_cast<float>(level_width);
    const float half = static_cast<float>(level_width / 2), minus_half = static_cast<float>(-level_width / 2);
    const float top = static_cast<float>(levels_ - 1);
    const float* counts = histogram_.const_data_ptr<float>();
    float* errors = errors_.mutable_data_ptr<float>();
    for (int64_t i = 0; i < bins_; ++i) {
      const float begin = static_cast<float>(i - first) * width;
      const float end = begin + width;
      const float level_of_begin = std::clamp(c10::div_floor_floating(begin, level), 0.0F, top);
      const float level_of_end = std::clamp(c10::div_floor_floating(end, level), 0.0F, top);
      const float density = counts[i] / width;
      const float begin_center = (level_of_begin + 0.5F) * level;
      const float end_center = level_of_end * level + half;
      float error = 0;
      error += squared_error(begin - begin_center, half, density);
      error += (level_of_end - level_of_begin - 1.0F) * squared_error(minus_half, half, density);
      error += squared_error(minus_half, end - end_center, density);
      errors[i] = error;
    }
    return at::sum(errors_).item<double>();
  }

 private:
  const at::Tensor& histogram_;
  at::Tensor errors_;
  int64_t bins_;
  int64_t levels_;
  double bin_width_;
};

}  // namespace

at::Tensor rescaled_histogram(const at::Tensor& histogram, float old_min, float old_max, float min,
                              float max) {
  const int64_t bins = histogram.numel();
  // One value only: all of it is in one bin.
  if (old_min == old_max) return at::histc(at::scalar_tensor(old_min), bins, min, max) * at::sum(histogram);
  const at::Tensor fine = histogram.repeat_interleave(kFiner) / static_cast<double>(kFiner);
  const float fine_width = (old_max - old_min) / static_cast<float>(bins * kFiner);
  const at::Tensor centers =
      at::linspace(old_min, old_max, bins * kFiner + 1).slice(0, 0, bins * kFiner) + 0.5F * fine_width;
  const at::Tensor edges = at::linspace(min, max, bins + 1);
  const at::Tensor places = (at::bucketize(centers, edges, false, true) - 1).clamp(0, bins - 1);
  return at::bincount(places, fine, bins);
}

std::pair<float, float> range_with_least_error(const at::Tensor& histogram, float min, float max,
                                               int64_t levels) {
  const int64_t bins = histogram.numel();
  const float bin_width = (max - min) / static_cast<float>(bins);
  const double total = at::sum(histogram).item<double>();
  const at::Tensor cumulated = at::cumsum(histogram, 0);
  const float* below = cumulated.const_data_ptr<float>();
  RangeError error(histogram, min, max, levels);
  double low_share = 0, high_share = 1, least = std::numeric_limits<double>::infinity();
  int64_t first = 0, last = bins - 1;
  while (low_share < high_share) {
    const double next_low = low_share + kQuantile, next_high = high_share - kQuantile;
    const float low_count = static_cast<float>(next_low * total),
                high_count = static_cast<float>(next_high * total);
    int64_t left = first, right = last;
    while (left < last && below[left] < low_count) ++left;
    while (right > first && below[right] > high_count) --right;
    int64_t next_first = first, next_last = last;
    if (left - first > last - right) {
      next_first = left;
      low_share = next_low;
    } else {
      next_last = right;
      high_share = next_high;
    }
    if (next_first == first && next_last == last) continue;
    const double now = error.between(next_first, next_last);
    if (now > least) break;
    least = now;
    first = next_first;
    last = next_last;
  }
  return {min + bin_width * static_cast<float>(first), min + bin_width * static_cast<float>(last + 1)};
}

}  // namespace halftone
