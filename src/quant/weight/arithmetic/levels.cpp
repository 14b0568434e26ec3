#include "quant/weight/arithmetic/levels.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "graph/aten/aten_parallel_for.h"

namespace halftone {
namespace {

constexpr int64_t kRowsPerTask = 16;
constexpr int kSteps = 15;  // between the least and the largest of 16 levels
constexpr int kLow = -8;

struct Levels {
  float scale = 1;
  float zero_point = 0;
};

/// A product and a sum in floats have put each value at most 3 · 2^-24 of the largest away from its level; scale and zero point
/// are floats too.
constexpr double kTolerance = 0x1p-20;

/// The distance of the levels, if `sorted` has `first` as the smallest distance of two different values: that may be several
/// levels.
std::optional<double> try_step(const std::vector<float>& sorted, double first, double tolerance) {
  const double low = sorted.front(), range = static_cast<double>(sorted.back()) - low;
  for (int levels = 1; levels <= kSteps; ++levels) {
    const double steps = std::nearbyint(range * levels / first);
    if (steps > kSteps) return std::nullopt;  // and more for all that follow
    const double step = range / steps;
    const bool fits = std::all_of(sorted.begin(), sorted.end(), [&](float value) {
      const double distance = value - low;
      return std::abs(distance - step * std::nearbyint(distance / step)) <= tolerance;
    });
    if (fits) return step;
  }
  return std::nullopt;
}

std::optional<Levels> try_group(const float* w, int64_t count, std::vector<float>& sorted) {
  sorted.assign(w, w + count);
  std::sort(sorted.begin(), sorted.end());
  const double low = sorted.front(), high = sorted.back();
  if (low == high) return Levels{1, -sorted.front()};
  const double tolerance = kTolerance * std::max(std::abs(low), std::abs(high));
  double smallest = high - low;
  for (size_t i = 1; i < sorted.size(); ++i) {
    const double gap = static_cast<double>(sorted[i]) - sorted[i - 1];
    if (gap > 4 * tolerance) smallest = std::min(smallest, gap);
  }
  if (smallest <= 4 * tolerance) return std::nullopt;  // rounding cannot be told from levels
  const std::optional<double> step = try_step(sorted, smallest, tolerance);
  if (!step) return std::nullopt;
  const Levels levels{static_cast<float>(*step), static_cast<float>(kLow - low / *step)};
  return std::isfinite(levels.scale) && std::isfinite(levels.zero_point) ? std::optional(levels)
                                                                         : std::nullopt;
}

/// False where a value is not what it becomes.
bool write_group(const float* w, int64_t count, const Levels& levels, int8_t* q) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(w[i]));
  for (int64_t i = 0; i < count; ++i) {
    const float steps = std::nearbyint(w[i] / levels.scale + levels.zero_point);
    q[i] =
        static_cast<int8_t>(std::clamp(steps, static_cast<float>(kLow), static_cast<float>(kLow + kSteps)));
    const double restored =
        static_cast<double>(levels.scale) * (q[i] - static_cast<double>(levels.zero_point));
    if (!(std::abs(restored - w[i]) <= 2 * kTolerance * largest)) return false;
  }
  return true;
}

}  // namespace

std::optional<AffineParts> try_levels(const at::Tensor& weight, int64_t group) {
  const int64_t n = weight.size(0), k = weight.size(1);
  if (group <= 0 || k == 0 || k % group != 0) return std::nullopt;
  const int64_t groups = k / group;
  AffineParts parts{at::empty({n, k}, at::kChar), at::empty({n, groups}, at::kFloat),
                    at::empty({n, groups}, at::kFloat)};
  const float* w = weight.const_data_ptr<float>();
  int8_t* q = parts.q.mutable_data_ptr<int8_t>();
  float* scale = parts.scale.mutable_data_ptr<float>();
  float* zero_point = parts.zero_point.mutable_data_ptr<float>();
  std::atomic<bool> found = true;
  AtenParallelFor parallel_for;
  parallel_for.run((n + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task, int) {
    std::vector<float> sorted;
    const int64_t last = std::min(n * groups, (task + 1) * kRowsPerTask * groups);
    for (int64_t g = task * kRowsPerTask * groups; g < last && found.load(std::memory_order_relaxed); ++g) {
      const std::optional<Levels> levels = try_group(w + g * group, group, sorted);
      if (!levels || !write_group(w + g * group, group, *levels, q + g * group)) {
        found = false;
        return;
      }
      scale[g] = levels->scale;
      zero_point[g] = levels->zero_point;
    }
  });
  return found ? std::optional(std::move(parts)) : std::nullopt;
}

}  // namespace halftone
