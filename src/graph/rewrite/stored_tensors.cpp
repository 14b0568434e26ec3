#include "graph/rewrite/stored_tensors.h"

#include <algorithm>
#include <cctype>

namespace halftone {

TensorMeta meta_of_tensor(const at::Tensor& tensor) {
  TensorMeta meta;
  meta.dtype = tensor.scalar_type();
  meta.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  meta.strides.assign(tensor.strides().begin(), tensor.strides().end());
  meta.device = tensor.device();
  return meta;
}

std::string value_name_for(std::string_view prefix, std::string_view target) {
  std::string name(target);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return std::string(prefix) + name;
}

Value* add_stored_input(Graph& graph, std::string hint, InputKind kind, std::string target,
                        const at::Tensor& tensor) {
  return graph.add_input({.name = std::move(hint), .meta = meta_of_tensor(tensor)}, kind, std::move(target));
}

}  // namespace halftone
