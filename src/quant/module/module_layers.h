// Finds what quantize_ may change in a C++ module: its linears and embeddings, and the tensors that it keeps.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "halftone/quant/quantize.h"

namespace halftone {

/// A weight in a module. The pointers live as long as the module does and is not changed.
struct ModuleLayer {
  LayerInfo info;
  std::string obstacle;  ///< why it can't be quantized; empty: it can
  at::Tensor* used =
      nullptr;  ///< what the module's forward reads; nullptr: not known (a parameter of no known layer)
  at::Tensor* entry = nullptr;  ///< the registered parameter, mostly the same tensor; nullptr: not registered
  std::string family;           ///< of what quantize_ left alone: the kind of LeftAlone
  const void* owner = nullptr;  ///< the module that holds it
  torch::nn::Module* module =
      nullptr;  ///< likewise, and `parameter` is the weight's name there; of known layers
  std::string parameter;
  const at::Tensor& weight() const { return used ? *used : *entry; }
};

struct ModuleLayers {
  std::vector<ModuleLayer>
      layers;  ///< in the module's order; a layer held twice only once, by its first name
  std::vector<at::Tensor>
      tensors;  ///< every parameter and buffer, and every weight that is used in place of one
};

ModuleLayers find_module_layers(torch::nn::Module& module);

/// Each tensor once, quantized ones by their parts.
int64_t total_bytes(const std::vector<at::Tensor>& tensors);
int64_t tensor_bytes(const at::Tensor& tensor);

}  // namespace halftone
