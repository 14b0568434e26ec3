// The arithmetic of one group, shared by quantizing (affine.cpp) and fake quantizing (fake_affine.cpp), so
// that both give the same integers. Files that include this are compiled without contraction of products and
// sums.
#pragma once

#include <algorithm>
#include <cmath>

#include "graph/aten/aten_parallel_for.h"
#include "quant/weight/arithmetic/affine.h"

namespace halftone::affine {

template <typename T>
float rounded(float value) {
  return static_cast<float>(static_cast<T>(value));
}

struct GroupScale {
  float scale;
  int zero_point;
};

struct Range {
  float lo, hi;
};

inline Range range_of(const float* w, int64_t count) {
  Range range{0, 0};
  for (int64_t i = 0; i < count; ++i) {
    range.lo = std::min(range.lo, w[i]);
    range.hi = std::max(range.hi, w[i]);
  }
  return range;
}

inline int clamp_steps(float steps, const AffineRule& rule) {
  return static_cast<int>(std::clamp(steps, static_cast<float>(rule.low), static_cast<float>(rule.high)));
}

/// Of a group whose numbers are in [lo, hi], which contains zero.
template <typename T>
GroupScale scale_of_range(float lo, float hi, const AffineRule& rule) {
  const float steps = static_cast<float>(rule.high - rule.low);
  if (rule.symmetric) {
    return {std::max(rounded<T>(std::max(-lo, hi) / (steps / 2)), rule.smallest_scale), 0};
  }
  const float range = rounded<T>(hi - lo);
  // A range beyond the type's largest number is divided before it is added up: every finite weight can be
  // quantized.
  const float step = std::isfinite(range) ? range / steps : hi / steps - lo / steps;
  const float scale = std::max(rounded<T>(step), rule.smallest_scale);
  const float zero_point = static_cast<float>(rule.low) - std::nearbyint(rounded<T>(lo / scale));
  return {scale, clamp_steps(zero_point, rule)};
}

template <typename T>
GroupScale scale_of(const float* w, int64_t count, const AffineRule& rule) {
  const auto [lo, hi] = range_of(w, count);
  return scale_of_range<T>(lo, hi, rule);
}

/// The integer before it is clamped.
template <typename T>
float steps_of(float w, float inverse, int zero_point) {
  return std::nearbyint(rounded<T>(w * inverse)) + static_cast<float>(zero_point);
}

template <typename T>
void quantize_group(const float* w, int64_t count, GroupScale s, const AffineRule& rule, int8_t* q) {
  const float inverse = rounded<T>(1.0f / s.scale);
  const float low = static_cast<float>(rule.low), high = static_cast<float>(rule.high);
  for (int64_t i = 0; i < count; ++i) {
    const float steps = steps_of<T>(w[i], inverse, s.zero_point);
    q[i] = static_cast<int8_t>(std::clamp(steps, low, high));
  }
}

// Calls f with a value of the C++ type of a floating-point type; double counts as float.
template <typename F>
auto with_type(c10::ScalarType type, F f) {
  if (type == c10::ScalarType::BFloat16) return f(c10::BFloat16{});
  if (type == c10::ScalarType::Half) return f(c10::Half{});
  return f(float{});
}

/// f(g, at, count) for each group of a matrix [n, k]: its number, its first element and its length; on all
/// threads.
template <typename F>
void for_each_group(int64_t n, int64_t k, int64_t group, F f) {
  constexpr int64_t kRowsPerTask = 16;
  const int64_t width = group == 0 ? k : group, groups = affine_groups(k, group);
  AtenParallelFor parallel_for;
  parallel_for.run((n + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task, int) {
    const int64_t first = task * kRowsPerTask * groups,
                  last = std::min(n * groups, first + kRowsPerTask * groups);
    for (int64_t g = first; g < last; ++g) {
      const int64_t column = g % groups * width;
      f(g, g / groups * k + column, std::min(width, k - column));
    }
  });
}

}  // namespace halftone::affine
