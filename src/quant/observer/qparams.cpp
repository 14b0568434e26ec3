// Scale and zero point of a range, as torch.ao computes them.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "halftone/ptq/observer.h"

namespace halftone {
namespace {

bool is_symmetric(QScheme scheme) {
  return scheme == QScheme::kPerTensorSymmetric || scheme == QScheme::kPerChannelSymmetric;
}

int32_t symmetric_zero_point(const ObserverConfig& config, int64_t quant_min, int64_t quant_max) {
  if (config.dtype != ConfigDType::kQUInt8 && config.dtype != ConfigDType::kUInt8) return 0;
  if (!config.quant_min) return 128;
  return static_cast<int32_t>(std::floor(static_cast<double>(quant_min + quant_max) / 2));
}

}  // namespace

QParams qparams_of_range(const ObserverConfig& config, const at::Tensor& min, const at::Tensor& max) {
  const bool float_zero_point = config.qscheme == QScheme::kPerChannelAffineFloatQParams;
  const auto [quant_min, quant_max] = config.range();
  const int64_t channels = min.numel();
  QParams result{at::empty({channels}, at::kFloat),
                 at::empty({channels}, float_zero_point ? at::kFloat : at::kInt)};
  const auto levels = static_cast<float>(quant_max - quant_min);
  const auto half_levels = static_cast<float>(static_cast<double>(quant_max - quant_min) / 2);
  const auto eps = static_cast<float>(config.eps);
  for (int64_t i = 0; i < channels; ++i) {
    const float low = min.const_data_ptr<float>()[i], high = max.const_data_ptr<float>()[i];
    if (!(low <= high))
      fail(ErrorCode::kInvalidArgument, "the range [{}, {}] of channel {} is none", low, high, i);
    const float below = std::min(low, 0.0F), above = std::max(high, 0.0F);
    float& scale = result.scale.mutable_data_ptr<float>()[i];
    if (is_symmetric(config.qscheme)) {
      scale = std::max(std::max(-below, above) / half_levels, eps);
      result.zero_point.mutable_data_ptr<int32_t>()[i] = symmetric_zero_point(config, quant_min, quant_max);
    } else if (float_zero_point) {
      scale = (high - low) / levels;
      if (!(scale > eps)) scale = 1;
      result.zero_point.mutable_data_ptr<float>()[i] = -low / scale;
    } else {
      scale = std::max((above - below) / levels, eps);
      const auto zero = static_cast<int64_t>(quant_min - static_cast<int64_t>(std::nearbyint(below / scale)));
      result.zero_point.mutable_data_ptr<int32_t>()[i] =
          static_cast<int32_t>(std::clamp<int64_t>(zero, quant_min, quant_max));
    }
  }
  return result;
}

}  // namespace halftone
