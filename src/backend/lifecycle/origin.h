// The original of a backend: captured if it is C++ code, its tensors by name, and loading those again.
#pragma once

#include <memory>
#include <vector>

#include "halftone/backend/backend.h"

namespace halftone::lifecycle {

struct Origin {
  std::shared_ptr<const GraphModule> graph;   ///< never changed by others; tensors are shared with the source
  std::shared_ptr<torch::nn::Module> module;  ///< where it was captured from one
  GraphSpec spec;
};

/// Throws if the samples do not fit the model.
Origin take_origin(const ModelSource& source, const GraphSpec& spec, const std::vector<Sample>& samples);

/// Parameters and buffers, as a state dictionary has them.
TensorMap state_of(const Origin& origin);

/// The source takes the tensors that both have; nothing is changed where one has another shape.
DictReport load_state(const ModelSource& source, const TensorMap& tensors);

}  // namespace halftone::lifecycle
