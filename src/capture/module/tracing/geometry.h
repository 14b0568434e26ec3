// The geometry of a tensor: which elements of its storage it shows, and as which type.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "graph/rewrite/stored_tensors.h"
#include "halftone/graph/graph.h"

namespace halftone {

/// Two tensors of one storage with equal geometries have the same content.
struct Geometry {
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
  bool conjugate = false, negative = false;
  bool operator==(const Geometry&) const = default;

  static Geometry of(const at::Tensor& tensor) {
    return {tensor.scalar_type(),    tensor.sizes().vec(), tensor.strides().vec(),
            tensor.storage_offset(), tensor.is_conj(),     tensor.is_neg()};
  }
  /// First byte and the byte after the last one that the elements cover.
  std::pair<int64_t, int64_t> extent() const {
    int64_t last = offset;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0) return {0, 0};
      last += (sizes[i] - 1) * strides[i];
    }
    const auto width = static_cast<int64_t>(c10::elementSize(dtype));
    return {offset * width, (last + 1) * width};
  }
  bool overlaps(const Geometry& other) const {
    const auto [begin, end] = extent();
    const auto [other_begin, other_end] = other.extent();
    return begin < other_end && other_begin < end;
  }
};

/// Of a graph without symbols.
inline std::vector<int64_t> constant_sizes(const std::vector<SymExpr>& sizes) {
  std::vector<int64_t> numbers;
  for (const SymExpr& size : sizes) numbers.push_back(size.constant());
  return numbers;
}

/// Sizes, strides and dtype as a graph keeps them.
inline TensorMeta tensor_meta(const at::Tensor& tensor) {
  TensorMeta meta = meta_of_tensor(tensor);
  meta.requires_grad = tensor.requires_grad();
  return meta;
}

}  // namespace halftone
