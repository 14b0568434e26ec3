#include "quant/weight/arithmetic/fake_affine.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "quant/weight/arithmetic/affine_steps.h"

namespace halftone {
namespace {

using affine::for_each_group;
using affine::GroupScale;
using affine::rounded;
using affine::with_type;

/// Nearest even, in two additions that compilers make vectors of. Beyond ±2^22 it is only near, and every
/// such number is clamped anyway.
inline float rint_small(float x) {
  constexpr float kMagic = 0x1.8p23f;
  return (x + kMagic) - kMagic;
}

class Groups {
 public:
  explicit Groups(const AffineScales& scales)
      : scale_(scales.scale.const_data_ptr<float>()),
        zero_point_(scales.zero_point.defined() ? scales.zero_point.const_data_ptr<int32_t>() : nullptr) {}
  GroupScale operator[](int64_t g) const { return {scale_[g], zero_point_ == nullptr ? 0 : zero_point_[g]}; }

 private:
  const float* scale_;
  const int32_t* zero_point_;
};

/// One group's numbers as steps.
template <typename T>
struct Steps {
  float inverse, zero, low, high;
  Steps(GroupScale s, const AffineRule& rule)
      : inverse(rounded<T>(1.0f / s.scale)),
        zero(static_cast<float>(s.zero_point)),
        low(static_cast<float>(rule.low)),
        high(static_cast<float>(rule.high)) {}
  float exact(float x) const { return rounded<T>(x * inverse); }
  float whole(float x) const { return rint_small(exact(x)) + zero; }
  /// In this order NaN stays NaN.
  float clamp(float steps) const { return std::min(std::max(steps, low), high); }
  bool holds(float steps) const { return steps >= low && steps <= high; }
};

template <typename T>
void fake_group(const float* x, int64_t count, GroupScale s, const AffineRule& rule, float* y) {
  const Steps<T> steps(s, rule);
  for (int64_t i = 0; i < count; ++i) y[i] = (steps.clamp(steps.whole(x[i])) - steps.zero) * s.scale;
}

template <typename T>
void gradient_of_group(const float* dy, const float* x, int64_t count, GroupScale s, const AffineRule& rule,
                       float* dx) {
  const Steps<T> steps(s, rule);
  for (int64_t i = 0; i < count; ++i) dx[i] = steps.holds(steps.whole(x[i])) ? dy[i] : 0.0f;
}

/// Added up in double: groups may be whole tensors.
template <typename T>
float scale_gradient_of_group(const float* dy, const float* x, int64_t count, GroupScale s,
                              const AffineRule& rule) {
  const Steps<T> steps(s, rule);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float whole = steps.whole(x[i]);
    const float slope = steps.clamp(whole) - steps.zero - (steps.holds(whole) ? steps.exact(x[i]) : 0.0f);
    sum += static_cast<double>(dy[i] * slope);
  }
  return static_cast<float>(sum);
}

}  // namespace

AffineParts affine_scales(const at::Tensor& low, const at::Tensor& high, const AffineRule& rule) {
  AffineParts parts{{}, at::empty(low.sizes(), at::kFloat), {}};
  if (!rule.symmetric) parts.zero_point = at::empty(low.sizes(), at::kChar);
  const float* lo = low.const_data_ptr<float>();
  const float* hi = high.const_data_ptr<float>();
  float* scale = parts.scale.mutable_data_ptr<float>();
  int8_t* zero_point = rule.symmetric ? nullptr : parts.zero_point.mutable_data_ptr<int8_t>();
  const auto choose =
      with_type(rule.scale_type, [](auto type) { return &affine::scale_of_range<decltype(type)>; });
  for (int64_t g = 0; g < low.numel(); ++g) {
    const GroupScale s = choose(std::min(lo[g], 0.0f), std::max(hi[g], 0.0f), rule);
    scale[g] = s.scale;
    if (zero_point != nullptr) zero_point[g] = static_cast<int8_t>(s.zero_point);
  }
  return parts;
}

at::Tensor quantize_with(const at::Tensor& weight, const AffineScales& scales, const AffineRule& rule) {
  at::Tensor q = at::empty(weight.sizes(), at::kChar);
  const float* w = weight.const_data_ptr<float>();
  int8_t* to = q.mutable_data_ptr<int8_t>();
  const Groups groups(scales);
  const auto quantize =
      with_type(rule.math_type, [](auto type) { return &affine::quantize_group<decltype(type)>; });
  for_each_group(weight.size(0), weight.size(1), scales.group, [&](int64_t g, int64_t at, int64_t count) {
    quantize(w + at, count, groups[g], rule, to + at);
  });
  return q;
}

at::Tensor fake_quantize_with(const at::Tensor& x, const AffineScales& scales, const AffineRule& rule) {
  at::Tensor y = at::empty_like(x);
  const float* from = x.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  const Groups groups(scales);
  const auto fake = with_type(rule.math_type, [](auto type) { return &fake_group<decltype(type)>; });
  for_each_group(x.size(0), x.size(1), scales.group, [&](int64_t g, int64_t at, int64_t count) {
    fake(from + at, count, groups[g], rule, to + at);
  });
  return y;
}

at::Tensor fake_quantize_gradient(const at::Tensor& dy, const at::Tensor& x, const AffineScales& scales,
                                  const AffineRule& rule) {
  at::Tensor dx = at::empty_like(x);
  const float* from = x.const_data_ptr<float>();
  const float* dfrom = dy.const_data_ptr<float>();
  float* to = dx.mutable_data_ptr<float>();
  const Groups groups(scales);
  const auto gradient =
      with_type(rule.math_type, [](auto type) { return &gradient_of_group<decltype(type)>; });
  for_each_group(x.size(0), x.size(1), scales.group, [&](int64_t g, int64_t at, int64_t count) {
    gradient(dfrom + at, from + at, count, groups[g], rule, to + at);
  });
  return dx;
}

at::Tensor fake_quantize_scale_gradient(const at::Tensor& dy, const at::Tensor& x, const AffineScales& scales,
                                        const AffineRule& rule) {
  at::Tensor dscale = at::empty_like(scales.scale);
  const float* from = x.const_data_ptr<float>();
  const float* dfrom = dy.const_data_ptr<float>();
  float* to = dscale.mutable_data_ptr<float>();
  const Groups groups(scales);
  const auto gradient =
      with_type(rule.math_type, [](auto type) { return &scale_gradient_of_group<decltype(type)>; });
  for_each_group(x.size(0), x.size(1), scales.group, [&](int64_t g, int64_t at, int64_t count) {
    to[g] = gradient(dfrom + at, from + at, count, groups[g], rule);
  });
  return dscale;
}

}  // namespace halftone
