// Calls of a model from any number of Python threads.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bindings.h"
#include "halftone/graph/graph_module.h"

namespace halftone::python {

/// Compiles a module at the first call, and keeps sessions for it. A model without state is run by any number of threads at
/// once, each with a session of its own; calls of a model with state (a KV cache) share one session and take turns.
/// Changes to the module's graph or tensors after the first call are not seen: make a new one then.
class Runner {
 public:
  explicit Runner(std::shared_ptr<GraphModule> module) : module_(std::move(module)) {}
  /// The GIL must not be held.
  c10::IValue operator()(const Sample& call);

 private:
  std::unique_ptr<Session> take();
  void give_back(std::unique_ptr<Session> session);
  std::shared_ptr<const GraphModule> module_;
  std::shared_ptr<const GraphExecutor> executor_;
  std::once_flag compiled_;
  std::unique_ptr<Session> with_state_;  // nullptr: the model has none
  std::mutex turns_;                     // of its calls
  std::mutex mutex_;                     // of the list below
  std::vector<std::unique_ptr<Session>> idle_;
};

/// "halftone": compiled; "eager": the interpreter. Error (invalid argument) for others. The GIL must not be held.
std::shared_ptr<const GraphExecutor> executor_of(const std::shared_ptr<GraphModule>& module,
                                                 const std::string& backend);

}  // namespace halftone::python
