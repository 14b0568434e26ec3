// Views of a quantized weight: transposed, or some of its rows. They share the parts.
#include <c10/core/WrapDimMinimal.h>

#include <algorithm>

#include "base/errors.h"
#include "quant/module/kernels.h"
#include "quant/module/layer_weight.h"

namespace halftone::weight_kernels {
namespace {

constexpr std::string_view kOnlyRows = "only whole rows can be cut out of it, at least one";

/// Rows [start, stop) of the tensor's dimension `dim`, which must be the weight's rows.
Tensor cut(const Tensor& self, int64_t dim, int64_t start, int64_t stop, std::string_view op) {
  const QuantizedMeta& meta = meta_for_use(self, op);
  if (start == 0 && stop == self.size(dim)) return make_quantized_tensor(meta.source, meta.transposed);
  if (dim != (meta.transposed ? 1 : 0) || start == stop) fail_unsupported(meta, op, kOnlyRows);
  return make_quantized_tensor(meta.source->rows(start, stop), meta.transposed);
}

std::vector<Tensor> cut_all(const Tensor& self, c10::IntArrayRef sizes, int64_t dim, std::string_view op) {
  std::vector<Tensor> result;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    if (size < 0) fail(ErrorCode::kInvalidArgument, "{}: a size of {} is negative", op, size);
    result.push_back(cut(self, dim, start, start + size, op));
    start += size;
  }
  if (start != self.size(dim)) {
    fail(ErrorCode::kInvalidArgument, "{}: sizes add up to {}, not to {}", op, start, self.size(dim));
  }
  return result;
}

}  // namespace

Tensor transpose_all(const Tensor& self) {
  const QuantizedMeta& meta = meta_for_use(self, "aten::t");
  return make_quantized_tensor(meta.source, !meta.transposed);
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  const bool same = c10::maybe_wrap_dim(dim0, 2) == c10::maybe_wrap_dim(dim1, 2);
  return same ? alias(self) : transpose_all(self);
}

Tensor permute(const Tensor& self, c10::IntArrayRef dims) {
  if (dims.size() != 2) fail(ErrorCode::kInvalidArgument, "permute: {} dimensions for a matrix", dims.size());
  const int64_t first = c10::maybe_wrap_dim(dims[0], 2);
  if (first == c10::maybe_wrap_dim(dims[1], 2))
    fail(ErrorCode::kInvalidArgument, "permute: repeated dimension");
  return first == 0 ? alias(self) : transpose_all(self);
}

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
             int64_t step) {
  constexpr std::string_view op = "aten::slice.Tensor";
  dim = c10::maybe_wrap_dim(dim, 2);
  if (step != 1) fail_unsupported(meta_for_use(self, op), op, kOnlyRows);
  const int64_t size = self.size(dim);
  const auto clamp = [&](int64_t index) {
    return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
  };
  const int64_t from = clamp(start.value_or(0));
  return cut(self, dim, from, std::max(from, clamp(end.value_or(size))), op);
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  dim = c10::maybe_wrap_dim(dim, 2);
  const int64_t size = self.size(dim);
  if (start < 0) start += size;
  if (start < 0 || length < 0 || start > size || length > size - start) {
    fail(ErrorCode::kInvalidArgument, "narrow: {} from {} is outside of a dimension of {}", length, start,
         size);
  }
  return cut(self, dim, start, start + length, "aten::narrow");
}

std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  dim = c10::maybe_wrap_dim(dim, 2);
  const int64_t size = self.size(dim);
  if (split_size < 1) fail(ErrorCode::kInvalidArgument, "split: size {} is not positive", split_size);
  std::vector<int64_t> sizes;
  for (int64_t start = 0; start < size; start += std::min(split_size, size - start)) {
    sizes.push_back(std::min(split_size, size - start));
  }
  return cut_all(self, sizes, dim, "aten::split");
}

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  if (chunks < 1) fail(ErrorCode::kInvalidArgument, "chunk: {} chunks", chunks);
  const int64_t size = self.size(dim);
  return split(self, std::max<int64_t>(1, size / chunks + (size % chunks != 0)), dim);
}

std::vector<Tensor> split_with_sizes(const Tensor& self, c10::IntArrayRef sizes, int64_t dim) {
  return cut_all(self, sizes, c10::maybe_wrap_dim(dim, 2), "aten::split_with_sizes");
}

}  // namespace halftone::weight_kernels
