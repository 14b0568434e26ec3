// A model made ready, as infer() calls it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graph/run/graph_call.h"
#include "halftone/backend/recipes.h"

namespace halftone::lifecycle {

/// Safe from several threads. A model with state begins with the module's, keeps its own from then on, and
/// its calls take turns; others run side by side.
class ReadyCall {
 public:
  explicit ReadyCall(ReadyModel model);
  c10::IValue operator()(std::vector<c10::IValue> args, std::map<std::string, c10::IValue> kwargs) const;
  const std::shared_ptr<GraphModule>& module() const { return module_; }
  const std::shared_ptr<const GraphExecutor>& executor() const { return executor_; }

 private:
  c10::IValue call(const std::vector<c10::IValue>& inputs) const;

  const std::shared_ptr<GraphModule> module_;
  const std::shared_ptr<const TensorMap> tensors_;
  const std::shared_ptr<const GraphExecutor> executor_;
  const InputCheck check_;
  const TensorMap state_;  ///< the tensors in it change
  mutable std::mutex turn_;
};

/// Frees the model, the packed weights that were made of its tensors, and gives memory back to the system.
void release(std::unique_ptr<const ReadyCall> ready);

}  // namespace halftone::lifecycle
