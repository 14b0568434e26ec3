#include "autograd/flat_module.h"

#include <ATen/ops/empty_strided.h>

#include "capture/module/tracing/geometry.h"

namespace halftone {

std::vector<c10::IValue> examples_without_data(const Graph& graph) {
  std::vector<c10::IValue> examples;
  for (const GraphInput& input : graph.inputs()) {
    const TensorMeta& meta = *input.value->meta();
    examples.emplace_back(at::empty_strided(constant_sizes(meta.sizes), constant_sizes(meta.strides),
                                            at::dtype(meta.dtype).device(c10::kMeta)));
  }
  return examples;
}

}  // namespace halftone
