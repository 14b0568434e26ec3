#include "quant/weight/arithmetic/affine.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>

#include <limits>
#include <vector>

#include "quant/weight/arithmetic/affine_steps.h"

namespace halftone {
namespace {

using namespace affine;

/// Looks for a better scale than the one that the range gives (affine.h says where).
template <typename T>
class ScaleSearch {
 public:
  explicit ScaleSearch(const AffineRule& rule, int64_t count) : rule_(rule), q_(static_cast<size_t>(count)) {}

  GroupScale run(const float* w, GroupScale start) {
    w_ = w;
    best_ = start;
    least_ = error_of(start);
    const auto [lo, hi] = range_of(w, static_cast<int64_t>(q_.size()));
    for (int step = kFirst; step <= kLast && least_ > 0; step += kStride) {
      const float scale = rounded<T>(start.scale * (static_cast<float>(step) / kSteps));
      if (!is_scale(scale)) continue;
      if (rule_.symmetric) {
        try_with_refit({scale, 0});
        continue;
      }
      const int keep_low = clamp_steps(static_cast<float>(rule_.low) - std::nearbyint(lo / scale), rule_);
      const int keep_high = clamp_steps(static_cast<float>(rule_.high) - std::nearbyint(hi / scale), rule_);
      for (int zero = std::min(keep_low, keep_high); zero <= std::max(keep_low, keep_high); ++zero) {
        try_with_refit({scale, zero});
      }
    }
    return best_;
  }

 private:
  // Factors from 0.70 to 1.09: below, too much is clipped; above, steps are only coarser.
  static constexpr int kFirst = 70, kLast = 109, kStride = 3;
  static constexpr float kSteps = 100;

  bool is_scale(float scale) const { return std::isfinite(scale) && scale >= rule_.smallest_scale; }

  /// Leaves the group's integers in q_. In double: squares of the largest floats are finite.
  double error_of(GroupScale s) {
    quantize_group<T>(w_, static_cast<int64_t>(q_.size()), s, rule_, q_.data());
    double sum = 0;
    for (size_t i = 0; i < q_.size(); ++i) {
      const double error = static_cast<double>(w_[i]) - static_cast<double>(s.scale) * (q_[i] - s.zero_point);
      sum += error * error;
    }
    return sum;
  }

  void consider(GroupScale s) {
    const double error = error_of(s);
    if (!(error < least_)) return;
    least_ = error;
    best_ = s;
  }

  void try_with_refit(GroupScale s) {
    consider(s);
    double product = 0, squares = 0;
    for (size_t i = 0; i < q_.size(); ++i) {
      const double steps = q_[i] - s.zero_point;
      product += steps * static_cast<double>(w_[i]);
      squares += steps * steps;
    }
    if (squares == 0) return;
    const float fitted = rounded<T>(static_cast<float>(product / squares));
    if (is_scale(fitted)) consider({fitted, s.zero_point});
  }

  const AffineRule& rule_;
  std::vector<int8_t> q_;
  const float* w_ = nullptr;
  GroupScale best_{};
  double least_ = 0;
};

template <typename T>
void search_group(const float* w, int64_t count, const AffineRule& rule, GroupScale& s) {
  s = ScaleSearch<T>(rule, count).run(w, s);
}

}  // namespace

AffineRule int8_rule(int weight_bits, c10::ScalarType dtype) {
  AffineRule rule;
  rule.low = weight_bits == 7 ? -64 : -128;
  rule.high = weight_bits == 7 ? 64 : 127;
  rule.smallest_scale = std::numeric_limits<float>::epsilon();
  rule.scale_type = dtype;
  return rule;
}

AffineRule intx_rule(int bits, bool symmetric, c10::ScalarType dtype) {
  AffineRule rule;
  rule.low = -(1 << (bits - 1));
  rule.high = (1 << (bits - 1)) - 1;
  rule.symmetric = symmetric;
  rule.smallest_scale = dtype == c10::ScalarType::Half
                            ? static_cast<float>(std::numeric_limits<c10::Half>::min())
                            : std::numeric_limits<float>::min();
  rule.scale_type = dtype;
  rule.math_type = dtype;
  return rule;
}

AffineParts quantize_affine(const at::Tensor& weight, int64_t group, const AffineRule& rule) {
  const int64_t n = weight.size(0), k = weight.size(1);
  const int64_t groups = affine_groups(k, group);
  AffineParts parts{at::empty({n, k}, at::kChar), at::empty({n, groups}, at::kFloat), {}};
  if (!rule.symmetric) parts.zero_point = at::empty({n, groups}, at::kChar);
  const float* w = weight.const_data_ptr<float>();
  int8_t* q = parts.q.mutable_data_ptr<int8_t>();
  float* scale = parts.scale.mutable_data_ptr<float>();
  int8_t* zero_point = rule.symmetric ? nullptr : parts.zero_point.mutable_data_ptr<int8_t>();

  const auto choose = with_type(rule.scale_type, [](auto type) { return &scale_of<decltype(type)>; });
  const auto quantize = with_type(rule.math_type, [](auto type) { return &quantize_group<decltype(type)>; });
  const auto search = with_type(rule.math_type, [](auto type) { return &search_group<decltype(type)>; });
  for_each_group(n, k, group, [&](int64_t g, int64_t at, int64_t count) {
    GroupScale s = choose(w + at, count, rule);
    if (rule.search) search(w + at, count, rule, s);
    scale[g] = s.scale;
    if (zero_point != nullptr) zero_point[g] = static_cast<int8_t>(s.zero_point);
    quantize(w + at, count, s, rule, q + at);
  });
  return parts;
}

at::Tensor dequantize_affine(const at::Tensor& q, const at::Tensor& scale, const at::Tensor& zero_point,
                             int64_t group) {
  const at::Tensor scales = scale.dim() == 1 ? scale.unsqueeze(1) : scale;
  const c10::SymInt n = q.sym_size(0), k = q.sym_size(1), groups = scales.sym_size(1);
  const c10::SymInt width = group == 0 ? k : c10::SymInt(group);
  // The last group is filled up, and what is too much cut off again.
  at::Tensor floats = at::constant_pad_nd_symint(q.to(at::kFloat), {0, groups * width - k}, 0)
                          .reshape_symint({n, groups, width});
  if (zero_point.defined()) floats = floats.sub(zero_point.to(at::kFloat).unsqueeze(2));
  return floats.mul(scales.unsqueeze(2))
      .reshape_symint({n, groups * width})
      .narrow_symint(1, 0, k)
      .contiguous();
}

}  // namespace halftone
