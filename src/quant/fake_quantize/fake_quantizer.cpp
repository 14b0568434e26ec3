#include "quant/fake_quantize/fake_quantizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <limits>

#include "base/errors.h"
#include "quant/fake_quantize/operators.h"

namespace halftone {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

at::Tensor number(int64_t value) {
  return at::full({}, value, at::kLong);
}

}  // namespace

FakeQuantizer::FakeQuantizer(AffineScheme scheme, const QatOptions& options, const at::Tensor& weight,
                             std::string layer)
    : torch::nn::Module("FakeQuantizer"),
      scheme_(std::move(scheme)),
      kind_(options.scales),
      averaging_constant_(options.averaging_constant),
      layer_(std::move(layer)) {
  const at::NoGradGuard no_grad;
  const Ranges ranges = ranges_of(weight);
  min_val_ = register_buffer("min_val", ranges.low);
  max_val_ = register_buffer("max_val", ranges.high);
  steps_ = register_buffer("steps", number(0));
  freeze_at_ = register_buffer("freeze_at", number(options.freeze_after.value_or(kNever)));
  // The paper's factor: as many numbers share a scale as are in a group, each with a gradient of up to
  // quant_max.
  const int64_t count = scheme_.group == 0 ? weight.size(1) : scheme_.group;
  scale_gradient_ = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(count, 1)) * scheme_.rule.high);
  if (kind_ == QatScales::kLearned) scale_ = register_parameter("scale", scales_of(ranges).scale);
}

FakeQuantizer::Ranges FakeQuantizer::ranges_of(const at::Tensor& rows) const {
  at::Tensor w = rows.detach().to(at::kFloat);
  const int64_t n = w.size(0), k = w.size(1);
  const int64_t group = scheme_.group == 0 || scheme_.group > k ? k : scheme_.group;
  const int64_t groups = affine_groups(k, group);
  // The last group is filled up with its own last number.
  if (const int64_t missing = groups * group - k; missing > 0)
    w = at::cat({w, w.narrow(1, k - 1, 1).expand({n, missing})}, 1);
  const auto [low, high] = at::aminmax(w.reshape({n, groups, group}), /*dim=*/2);
  return {low, high};
}

FakeQuantizer::Ranges FakeQuantizer::used_ranges(const at::Tensor& rows, int64_t first) const {
  const Ranges now = ranges_of(rows);
  const int64_t count = rows.size(0);
  const at::Tensor low = min_val_.narrow(0, first, count), high = max_val_.narrow(0, first, count);
  const at::Tensor frozen = steps_.ge(freeze_at_);
  if (kind_ == QatScales::kRange) return {at::where(frozen, low, now.low), at::where(frozen, high, now.high)};
  if (!is_training()) return {low, high};
  return {at::where(frozen, low, low + (now.low - low) * averaging_constant_),
          at::where(frozen, high, high + (now.high - high) * averaging_constant_)};
}

void FakeQuantizer::remember(const Ranges& ranges, int64_t first) {
  const int64_t count = ranges.low.size(0);
  min_val_.narrow(0, first, count).copy_(ranges.low);
  max_val_.narrow(0, first, count).copy_(ranges.high);
  // A weight may be used in parts (MultiheadAttention's): its last part ends the call.
  if (first + count == min_val_.size(0)) steps_.add_(1);
}

FakeQuantizer::Scales FakeQuantizer::scales_of(const Ranges& ranges) const {
  const auto [scale, zero_point] = ops::affine_scales(ranges.low, ranges.high, scheme_.rule);
  return {scale, scheme_.rule.symmetric ? at::Tensor() : zero_point};
}

at::Tensor FakeQuantizer::learned_scale(int64_t first, int64_t count) const {
  // A step of the optimizer may go below zero.
  return at::clamp_min(scale_.narrow(0, first, count), scheme_.rule.smallest_scale);
}

at::Tensor FakeQuantizer::weight(const at::Tensor& rows, int64_t first) {
  Scales scales;
  if (kind_ == QatScales::kLearned) {
    scales.scale = learned_scale(first, rows.size(0));
    if (is_training()) {
      const at::NoGradGuard no_grad;
      if (first + rows.size(0) == min_val_.size(0)) steps_.add_(1);
    }
  } else {
    const at::NoGradGuard no_grad;
    const Ranges ranges = used_ranges(rows, first);
    if (is_training()) remember(ranges, first);
    scales = scales_of(ranges);
  }
  const AffineRule& rule = scheme_.rule;
  const std::optional<at::Tensor> zero_point =
      scales.zero_point.defined() ? std::optional(scales.zero_point) : std::nullopt;
  return ops::fake_quantize(rows, scales.scale, zero_point,
                            {scheme_.group, rule.low, rule.high, rule.math_type}, scale_gradient_);
}

at::Tensor FakeQuantizer::activations(const at::Tensor& x) const {
  const ActivationRule& rule = scheme_.activations;
  return rule.quantized ? ops::fake_quantize_rows(x, rule.symmetric, rule.group) : x;
}

void FakeQuantizer::freeze() {
  if (kind_ == QatScales::kLearned) {
    scale_.set_requires_grad(false);
    scale_.mutable_grad().reset();
    return;
  }
  const at::NoGradGuard no_grad;
  freeze_at_.copy_(at::minimum(freeze_at_, steps_));
}

QuantizedWeight FakeQuantizer::quantized(const at::Tensor& weight) const {
  const at::NoGradGuard no_grad;
  // Refuses what quantize_() would refuse, such as NaN.
  QuantizedWeight result = quantize_weight(weight, scheme_.config, layer_);
  const int64_t n = weight.size(0);
  const Scales scales =
      kind_ == QatScales::kLearned
          ? Scales{learned_scale(0, n), {}}
          : scales_of(kind_ == QatScales::kRange ? used_ranges(weight, 0) : Ranges{min_val_, max_val_});
  result.parts = scheme_.parts(weight.detach().to(at::kFloat).contiguous(), scales.scale, scales.zero_point);
  return result;
}

}  // namespace halftone
