// The built-in weight formats, one for each config type.
#pragma once

#include <memory>

#include "halftone/quant/weight_format.h"

namespace halftone {

std::shared_ptr<const WeightFormat> make_format(const Int8WeightOnlyConfig& config);
std::shared_ptr<const WeightFormat> make_format(const Int8DynamicActivationInt8WeightConfig& config);
std::shared_ptr<const WeightFormat> make_format(const Int4WeightOnlyConfig& config);
std::shared_ptr<const WeightFormat> make_format(const Float8WeightOnlyConfig& config);
std::shared_ptr<const WeightFormat> make_format(const Float8DynamicActivationFloat8WeightConfig& config);
std::shared_ptr<const WeightFormat> make_format(const IntxWeightOnlyConfig& config);
std::shared_ptr<const WeightFormat> make_format(const Bf16WeightOnlyConfig& config);

/// The weight's part of that name, where it has one.
inline std::optional<at::Tensor> zero_point_of(const QuantizedWeight& weight) {
  if (!weight.has_part("zero_point")) return std::nullopt;
  return weight.part("zero_point");
}

}  // namespace halftone
