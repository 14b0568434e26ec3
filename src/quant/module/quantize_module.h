// quantize_ on C++ modules with weights that come from elsewhere: from training (convert_qat).
#pragma once

#include <functional>
#include <string_view>

#include "halftone/quant/quantize.h"
#include "halftone/quant/weight_format.h"

namespace halftone {

/// The quantized weight of a layer; asked once for weights that layers share. quantize_() takes
/// quantize_weight().
using MakeQuantizedWeight = std::function<QuantizedWeight(const at::Tensor& weight, const QuantConfig& config,
                                                          std::string_view layer)>;

QuantizeReport quantize_module(torch::nn::Module& module, const QuantConfig& config,
                               const QuantizeOptions& options, const MakeQuantizedWeight& make);

}  // namespace halftone
