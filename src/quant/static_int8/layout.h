// Tensors as the kernels of images see them: [batch][pixels][channels].
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/conv/conv_shape.h"
#include "kernels/quantized_ops/quantized_ops.h"

namespace halftone::static_int8 {

/// kInvalidArgument unless it is a uint8 tensor of three to five dimensions: batch, channels, pixels.
void check_images(const char* name, const char* what, const at::Tensor& tensor);
/// kInvalidArgument unless it is a uint8 tensor.
void check_bytes(const char* name, const char* what, const at::Tensor& tensor);

/// The pixels' sizes of a tensor of sizes [batch, channels, …], width last.
kernels::ConvExtent pixel_extent(c10::IntArrayRef sizes);
/// An int[] operand, one number for each dimension of pixels; `otherwise` in front of them.
kernels::ConvExtent to_extent(const char* name, const char* what, c10::IntArrayRef numbers, int64_t dims,
                              int64_t otherwise);

/// [batch, channels, …] as a dense tensor [batch, …, channels]; a copy only if memory lies otherwise.
at::Tensor channels_last_rows(const at::Tensor& tensor);
/// Whether a result like this one shall be channels last: four and five dimensions always, three where these
/// are.
bool wants_channels_last(const at::Tensor& tensor);
/// A new tensor of sizes [batch, channels, …] whose channels are neighbours.
at::Tensor empty_channels_last(c10::IntArrayRef sizes, const at::TensorOptions& options);

/// The two numbers of an operator's arguments, checked: kInvalidArgument for a scale that is not finite and
/// positive or a zero point outside of uint8.
kernels::QuantParams to_params(const char* name, double scale, int64_t zero_point);
kernels::QuantTarget to_target(const char* name, double scale, int64_t zero_point, int64_t least,
                               int64_t largest);

}  // namespace halftone::static_int8
