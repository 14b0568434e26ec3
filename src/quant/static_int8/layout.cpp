#include "quant/static_int8/layout.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/movedim.h>

#include <cfloat>
#include <cmath>

#include "base/errors.h"
#include "graph/aten/dtype_text.h"

namespace halftone::static_int8 {

void check_bytes(const char* name, const char* what, const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::kByte)
    fail(ErrorCode::kInvalidArgument, "{}: {} must be uint8, not {}", name, what,
         dtype_text(tensor.scalar_type()));
}

void check_images(const char* name, const char* what, const at::Tensor& tensor) {
  check_bytes(name, what, tensor);
  if (tensor.dim() < 3 || tensor.dim() > 5)
    fail(ErrorCode::kInvalidArgument,
         "{}: {} must have batch, channels and one to three more dimensions, not {}", name, what,
         tensor.dim());
}

kernels::ConvExtent pixel_extent(c10::IntArrayRef sizes) {
  kernels::ConvExtent extent{1, 1, 1};
  const size_t dims = sizes.size() - 2;
  for (size_t i = 0; i < dims; ++i) extent[kernels::kConvDims - dims + i] = sizes[2 + i];
  return extent;
}

kernels::ConvExtent to_extent(const char* name, const char* what, c10::IntArrayRef numbers, int64_t dims,
                              int64_t otherwise) {
  if (static_cast<int64_t>(numbers.size()) != dims)
    fail(ErrorCode::kInvalidArgument, "{}: {} has {} numbers for {} dimensions", name, what, numbers.size(),
         dims);
  kernels::ConvExtent extent{otherwise, otherwise, otherwise};
  for (int64_t i = 0; i < dims; ++i)
    extent[static_cast<size_t>(kernels::kConvDims - dims + i)] = numbers[static_cast<size_t>(i)];
  return extent;
}

at::Tensor channels_last_rows(const at::Tensor& tensor) {
  return tensor.movedim(1, -1).contiguous();
}

bool wants_channels_last(const at::Tensor& tensor) {
  return tensor.dim() > 3 || (tensor.dim() == 3 && tensor.size(1) > 1 && tensor.stride(1) == 1);
}

at::Tensor empty_channels_last(c10::IntArrayRef sizes, const at::TensorOptions& options) {
  std::vector<int64_t> moved = {sizes[0]};
  moved.insert(moved.end(), sizes.begin() + 2, sizes.end());
  moved.push_back(sizes[1]);
  return at::empty(moved, options).movedim(-1, 1);
}

kernels::QuantParams to_params(const char* name, double scale, int64_t zero_point) {
  // The kernels divide by it: numbers below the least normal one would give infinity.
  if (!std::isfinite(static_cast<float>(scale)) || !(static_cast<float>(scale) >= FLT_MIN))
    fail(ErrorCode::kInvalidArgument, "{}: a scale must be finite and above 0, not {}", name, scale);
  if (zero_point < 0 || zero_point > 255)
    fail(ErrorCode::kInvalidArgument, "{}: zero point {} is no uint8", name, zero_point);
  return {static_cast<float>(scale), static_cast<int32_t>(zero_point)};
}

kernels::QuantTarget to_target(const char* name, double scale, int64_t zero_point, int64_t least,
                               int64_t largest) {
  if (least < 0 || least > largest || largest > 255)
    fail(ErrorCode::kInvalidArgument, "{}: [{}, {}] is no range of uint8", name, least, largest);
  kernels::QuantTarget target;
  target.params = to_params(name, scale, zero_point);
  target.lo = static_cast<int32_t>(least);
  target.hi = static_cast<int32_t>(largest);
  return target;
}

}  // namespace halftone::static_int8
