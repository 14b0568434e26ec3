#include "capture/module/tracing/module_tensors.h"

#include <torch/nn/module.h>

#include <algorithm>

#include "capture/module/tracing/geometry.h"
#include "capture/module/tracing/snapshots.h"
#include "halftone/quant/quantized_tensor.h"

namespace halftone {

ModuleTensors::ModuleTensors(torch::nn::Module& module) {
  visit(module, "");
}

ModuleTensors::ModuleTensors(const Graph& graph, const TensorMap& tensors) {
  for (const GraphInput& input : graph.inputs()) {
    const auto found = tensors.find(input.target);
    if (input.kind == InputKind::kUser || found == tensors.end()) continue;
    const size_t dot = input.target.rfind('.');
    add(input.target, dot == std::string::npos ? "" : input.target.substr(0, dot), input.kind, found->second);
  }
  for (const auto& node : graph.nodes()) types_.emplace(node->source().layer, node->source().module_type);
}

void ModuleTensors::visit(torch::nn::Module& module, const std::string& layer) {
  if (!layers_.emplace(&module, layer).second) return;
  types_[layer] = module.name();
  const std::string prefix = layer.empty() ? "" : layer + ".";
  for (const auto& item : module.named_parameters(/*recurse=*/false))
    add(prefix + item.key(), layer, InputKind::kParameter, item.value());
  for (const auto& item : module.named_buffers(/*recurse=*/false))
    add(prefix + item.key(), layer, InputKind::kBuffer, item.value());
  for (const auto& child : module.named_children()) {
    if (child.value()) visit(*child.value(), prefix + child.key());
  }
}

void ModuleTensors::add(std::string name, const std::string& layer, InputKind kind,
                        const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  if (is_quantized_tensor(tensor)) {
    for (const auto& [part, value] : quantized_weight_of(tensor).parts)
      add(name + ":" + part, layer, InputKind::kParameter, value);
    return;
  }
  if (!tensor.has_storage()) return;
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  for (const size_t known : storages_[storage]) {
    if (Geometry::of(tensors_[known].tensor) == Geometry::of(tensor)) return;
  }
  storages_[storage].push_back(tensors_.size());
  names_.emplace(name, tensors_.size());
  const uint64_t checksum = kind == InputKind::kBuffer ? fingerprint(tensor.storage()) : 0;
  tensors_.push_back({std::move(name), layer, kind, tensor, checksum});
}

std::vector<const ModuleTensor*> ModuleTensors::in_storage(const c10::StorageImpl* storage) const {
  std::vector<const ModuleTensor*> found;
  if (const auto entry = storages_.find(storage); entry != storages_.end()) {
    for (const size_t index : entry->second) found.push_back(&tensors_[index]);
  }
  return found;
}

const std::string& ModuleTensors::type_of(std::string_view layer) const {
  static const std::string none;
  const auto found = types_.find(layer);
  return found == types_.end() ? none : found->second;
}

const std::string* ModuleTensors::try_layer_of(const torch::nn::Module* module) const {
  const auto found = layers_.find(module);
  return found == layers_.end() ? nullptr : &found->second;
}

std::string common_layer(std::string_view a, std::string_view b) {
  size_t end = 0;
  for (size_t i = 0;; ++i) {
    const bool a_ends = i == a.size() || a[i] == '.';
    const bool b_ends = i == b.size() || b[i] == '.';
    if (a_ends && b_ends) end = i;
    if (i == a.size() || i == b.size() || a[i] != b[i]) break;
  }
  return std::string(a.substr(0, end));
}

}  // namespace halftone
