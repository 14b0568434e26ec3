// Tensors whose channels, dimension 1, are the innermost in memory: what emitters of convolutions and of
// pooling share.
#pragma once

#include <algorithm>
#include <vector>

#include "compiler/executor/plan.h"
#include "kernels/conv/conv_shape.h"

namespace halftone::compiler {

/// The same elements with the channels as the last dimension.
inline Slot channels_at_the_end(const Slot& slot) {
  return {slot.buffer, slot.meta.movedim(1, -1)};
}

/// Of a dense tensor [n, c, …] that lies in memory as [n, …, c].
inline std::vector<int64_t> dense_channels_last(c10::IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  int64_t next = std::max<int64_t>(sizes[1], 1);
  for (size_t d = sizes.size(); d-- > 0;) {
    if (d == 1) continue;
    strides[d] = next;
    next *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

/// One to three numbers as the last ones of an extent; dimensions that are not there get `otherwise`.
inline kernels::ConvExtent extent_of(c10::IntArrayRef values, int64_t otherwise) {
  kernels::ConvExtent extent;
  extent.fill(otherwise);
  std::copy(values.begin(), values.end(), extent.end() - static_cast<std::ptrdiff_t>(values.size()));
  return extent;
}

}  // namespace halftone::compiler
