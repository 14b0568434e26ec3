// The tensors that a C++ module registers, by qualified name, and its layers.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "halftone/graph/graph_module.h"

namespace torch::nn {
class Module;
}

namespace halftone {

struct ModuleTensor {
  std::string name;   ///< "encoder.layer.0.query.weight"; a part of a quantized weight: "….weight:scale"
  std::string layer;  ///< "encoder.layer.0.query"
  InputKind kind = InputKind::kParameter;
  at::Tensor tensor;
  uint64_t checksum = 0;  ///< of a buffer's memory, before the model runs
};

/// Every tensor once, by its first name: tied ones are one tensor. Keeps the tensors alive, not the module.
class ModuleTensors {
 public:
  ModuleTensors() = default;  ///< of no module: there are no names
  explicit ModuleTensors(torch::nn::Module& module);
  /// Of a graph module: layers are what stands before the last dot.
  ModuleTensors(const Graph& graph, const TensorMap& tensors);

  const std::vector<ModuleTensor>& tensors() const { return tensors_; }
  /// Those in a storage; empty if it is not the module's.
  std::vector<const ModuleTensor*> in_storage(const c10::StorageImpl* storage) const;
  bool has_name(std::string_view name) const { return names_.contains(name); }

  const std::string& type_of(std::string_view layer) const;  ///< "" for an unknown layer
  const std::string* try_layer_of(
      const torch::nn::Module* module) const;  ///< nullptr for one that is not in it

 private:
  void visit(torch::nn::Module& module, const std::string& layer);
  void add(std::string name, const std::string& layer, InputKind kind, const at::Tensor& tensor);
  std::vector<ModuleTensor> tensors_;
  std::map<std::string, size_t, std::less<>> names_;
  std::unordered_map<const c10::StorageImpl*, std::vector<size_t>> storages_;
  std::map<std::string, std::string, std::less<>> types_;
  std::unordered_map<const torch::nn::Module*, std::string> layers_;
};

/// "a.b.c" and "a.b.d" → "a.b"; "" is the model itself.
std::string common_layer(std::string_view a, std::string_view b);

}  // namespace halftone
