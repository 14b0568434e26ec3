// Quantized weights as tensors: what quantize_ puts into a C++ module, so that its forward code stays as it
// is.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "halftone/base/api.h"
#include "halftone/quant/weight_format.h"

namespace halftone {

/// A tensor of the weight's sizes and dtype without a storage: the weight's parts are attached to it. It can
/// be transposed, multiplied with (linear, addmm, mm, matmul), cut by rows, used as an embedding's table,
/// detached, cloned, dequantized, converted and printed; operators that only read sizes or dtype work too.
/// Everything else raises kUnsupported, naming layer, operator and config, and so does any use that would
/// need a gradient of the weight. Handles, clones and views share the parts, which nothing changes.
///
/// `parameter.set_data(make_quantized_tensor(…))` quantizes a parameter in place: every handle on it, in its
/// module and in others, is quantized then, and it no longer requires a gradient. set_data() with a plain
/// tensor of the same dtype is the way back.
HALFTONE_API at::Tensor make_quantized_tensor(QuantizedWeight weight, std::string layer);

HALFTONE_API bool is_quantized_tensor(const at::Tensor& tensor);

/// [n, k], even if the tensor is a transposed view, [k, n]. Lives as long as the tensor. kInvalidArgument
/// for a plain tensor.
HALFTONE_API const QuantizedWeight& quantized_weight_of(const at::Tensor& tensor);
HALFTONE_API const std::string& layer_of(const at::Tensor& tensor);
HALFTONE_API bool is_transposed(const at::Tensor& tensor);

}  // namespace halftone
