#include "quant/ptq/quantize_weight.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/round.h>

#include "base/errors.h"
#include "quant/ptq/decide.h"

namespace halftone::ptq {
namespace {

bool is_per_channel_scheme(QScheme scheme) {
  return scheme != QScheme::kPerTensorAffine && scheme != QScheme::kPerTensorSymmetric;
}

}  // namespace

c10::ScalarType storage_type(ConfigDType dtype) {
  return dtype == ConfigDType::kQInt8 || dtype == ConfigDType::kInt8 ? at::kChar : at::kByte;
}

std::pair<int64_t, int64_t> value_range(const ObserverConfig& config, bool whole_dtype) {
  if (!whole_dtype || config.dtype == ConfigDType::kQUInt4x2) return config.range();
  ObserverConfig whole(config.kind);
  whole.dtype = config.dtype;
  return whole.range();
}

IntegerWeight quantize_stored_weight(const at::Tensor& weight, const ObserverConfig& config,
                                     bool whole_dtype) {
  const at::NoGradGuard no_grad;
  const auto observer = make_observer(config);
  observer->observe(weight);
  IntegerWeight result{{}, observer->qparams(), std::nullopt, value_range(config, whole_dtype)};
  at::Tensor scale = result.qparams.scale, zero_point = result.qparams.zero_point.to(at::kFloat);
  const bool float_zero_point = config.qscheme == QScheme::kPerChannelAffineFloatQParams;
  if (is_per_channel_scheme(config.qscheme)) {
    result.axis = config.ch_axis;
    std::vector<int64_t> along(static_cast<size_t>(weight.dim()), 1);
    along.at(static_cast<size_t>(config.ch_axis)) = -1;
    scale = scale.view(along);
    zero_point = zero_point.view(along);
  }
  const at::Tensor steps = weight * scale.reciprocal();
  // A zero point that is not an integer takes part in the rounding.
  const at::Tensor rounded = float_zero_point ? at::round(steps + zero_point) : at::round(steps) + zero_point;
  result.values = at::clamp(rounded, result.range.first, result.range.second).to(storage_type(config.dtype));
  return result;
}

}  // namespace halftone::ptq
