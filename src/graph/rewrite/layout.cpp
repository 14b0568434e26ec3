#include "graph/rewrite/layout.h"

#include <algorithm>

#include "graph/ir/text_names.h"

namespace halftone {

size_t rank(const Value* value) {
  return value->meta() ? value->meta()->sizes.size() : 0;
}

TensorMeta contiguous_meta(c10::ScalarType dtype, std::vector<SymExpr> sizes) {
  TensorMeta meta;
  meta.dtype = dtype;
  meta.strides = contiguous_strides_or_none(sizes);
  meta.sizes = std::move(sizes);
  return meta;
}

TensorMeta channels_last_meta(c10::ScalarType dtype, const std::vector<SymExpr>& sizes) {
  TensorMeta meta;
  meta.dtype = dtype;
  meta.sizes = sizes;
  meta.strides = channels_last_strides(sizes);
  return meta;
}

std::optional<TensorMeta> with_contiguous_strides(std::optional<TensorMeta> meta) {
  if (meta) meta->strides = contiguous_strides_or_none(meta->sizes);
  return meta;
}

std::vector<SymExpr> contiguous_strides_or_none(const std::vector<SymExpr>& sizes) {
  return contiguous_strides(sizes).value_or(std::vector<SymExpr>{});
}

std::vector<SymExpr> channels_last_strides(const std::vector<SymExpr>& sizes) {
  if (sizes.size() < 3) return contiguous_strides_or_none(sizes);
  std::vector<SymExpr> moved = sizes;  // N, spatial …, C
  std::rotate(moved.begin() + 1, moved.begin() + 2, moved.end());
  std::vector<SymExpr> strides = contiguous_strides_or_none(moved);
  if (!strides.empty()) std::rotate(strides.begin() + 1, strides.end() - 1, strides.end());
  return strides;
}

}  // namespace halftone
