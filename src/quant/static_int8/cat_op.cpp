// halftone::int8_cat: parts of different scales, each requantized to its place in the result.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "base/errors.h"
#include "graph/aten/aten_parallel_for.h"
#include "quant/static_int8/layout.h"
#include "quant/static_int8/operators.h"

namespace halftone::static_int8 {
namespace {

constexpr const char* kCatName = "halftone::int8_cat";

/// Sizes of the result; `dim` counts from the front afterwards.
std::vector<int64_t> cat_sizes(const at::TensorList& tensors, int64_t& dim) {
  if (tensors.empty()) fail(ErrorCode::kInvalidArgument, "{}: there is nothing to join", kCatName);
  std::vector<int64_t> sizes = tensors[0].sizes().vec();
  const auto rank = static_cast<int64_t>(sizes.size());
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank)
    fail(ErrorCode::kInvalidArgument, "{}: there is no such dimension in {}", kCatName, rank);
  int64_t& along = sizes[static_cast<size_t>(dim)];
  for (size_t i = 1; i < tensors.size(); ++i) {
    std::vector<int64_t> other = tensors[i].sizes().vec();
    if (other.size() != sizes.size()) fail(ErrorCode::kInvalidArgument, "{}: ranks differ", kCatName);
    along += other[static_cast<size_t>(dim)];
    other[static_cast<size_t>(dim)] = along;
    if (other != sizes)
      fail(ErrorCode::kInvalidArgument, "{}: sizes differ beside dimension {}", kCatName, dim);
  }
  return sizes;
}

void check_parts(at::TensorList tensors, at::ArrayRef<double> scales, at::IntArrayRef zero_points) {
  if (scales.size() != tensors.size() || zero_points.size() != tensors.size())
    fail(ErrorCode::kInvalidArgument, "{}: {} tensors, {} scales, {} zero points", kCatName, tensors.size(),
         scales.size(), zero_points.size());
  for (const at::Tensor& tensor : tensors) check_bytes(kCatName, "each part", tensor);
  for (size_t i = 0; i < tensors.size(); ++i) to_params(kCatName, scales[i], zero_points[i]);
}

at::Tensor cat_cpu(at::TensorList tensors, int64_t dim, at::ArrayRef<double> scales,
                   at::IntArrayRef zero_points, double out_scale, int64_t out_zero_point, int64_t out_min,
                   int64_t out_max) {
  const std::vector<int64_t> sizes = cat_sizes(tensors, dim);
  check_parts(tensors, scales, zero_points);
  const kernels::QuantTarget target = to_target(kCatName, out_scale, out_zero_point, out_min, out_max);
  const bool images = wants_channels_last(tensors[0]);
  const at::Tensor out =
      images ? empty_channels_last(sizes, tensors[0].options()) : at::empty(sizes, tensors[0].options());
  // In the order of memory: [batch, …, channels], or as it is.
  const at::Tensor whole = images ? out.movedim(1, -1) : out;
  const int64_t along = !images || dim == 0 ? dim : dim == 1 ? whole.dim() - 1 : dim - 1;
  const int64_t inner = c10::multiply_integers(whole.sizes().begin() + along + 1, whole.sizes().end());
  const int64_t outer = c10::multiply_integers(whole.sizes().begin(), whole.sizes().begin() + along);
  AtenParallelFor parallel_for;
  int64_t place = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor part = images ? channels_last_rows(tensors[i]) : tensors[i].contiguous();
    kernels::RequantizeRows rows;
    rows.x = part.const_data_ptr<uint8_t>();
    rows.rows = outer;
    rows.count = rows.x_stride = part.size(along) * inner;
    rows.y = out.data_ptr<uint8_t>() + place;
    rows.y_stride = whole.size(along) * inner;
    place += rows.count;
    kernels::requantize_rows(kernels::choose_quantized_ops(), rows,
                             to_params(kCatName, scales[i], zero_points[i]), target, parallel_for);
  }
  return out;
}

at::Tensor cat_meta(at::TensorList tensors, int64_t dim, at::ArrayRef<double> scales,
                    at::IntArrayRef zero_points, double out_scale, int64_t out_zero_point, int64_t out_min,
                    int64_t out_max) {
  const std::vector<int64_t> sizes = cat_sizes(tensors, dim);
  check_parts(tensors, scales, zero_points);
  to_target(kCatName, out_scale, out_zero_point, out_min, out_max);
  return wants_channels_last(tensors[0]) ? empty_channels_last(sizes, tensors[0].options())
                                         : at::empty(sizes, tensors[0].options());
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def(
      "int8_cat(Tensor[] tensors, int dim, *, float[] scales, int[] zero_points, float out_scale, "
      "int out_zero_point, int out_min=0, int out_max=255) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("int8_cat", cat_cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("int8_cat", cat_meta);
}

}  // namespace

void link_cat_operators() {}

}  // namespace halftone::static_int8
