#include "backend/module_function.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>

#include "base/errors.h"
#include "base/log.h"
#include "graph/run/graph_call.h"
#include "graph/run/mutation.h"

namespace halftone {
namespace {

class ModuleFunction {
 public:
  ModuleFunction(std::shared_ptr<const GraphModule> module, std::shared_ptr<const GraphExecutor> executor)
      : module_(std::move(module)),
        executor_(std::move(executor)),
        check_(*module_),
        state_names_(mutated_tensor_names(executor_->graph())),
        name_(module_->name.empty() ? "graph" : module_->name) {}

  std::vector<c10::IValue> call(const std::vector<c10::IValue>& inputs) {
    const std::shared_ptr<const TensorMap> tensors = module_->tensors();
    std::unique_lock lock(state_mutex_, std::defer_lock);
    if (!state_names_.empty()) lock.lock();
    return call_graph({name_, check_, *executor_, *tensors}, inputs, state_of(*tensors));
  }

 private:
  /// The module's own tensors, not copies: what a call writes is visible to all of their users, as in eager.
  TensorMap state_of(const TensorMap& tensors) const {
    TensorMap state;
    for (const std::string& name : state_names_) {
      const auto found = tensors.find(name);
      if (found == tensors.end())
        fail(ErrorCode::kNotFound, "{}: the graph writes \"{}\", which has no tensor", name_, name);
      state.emplace(name, found->second);
    }
    return state;
  }

  std::shared_ptr<const GraphModule> module_;
  std::shared_ptr<const GraphExecutor> executor_;
  InputCheck check_;
  std::vector<std::string> state_names_;
  std::string name_;
  std::mutex state_mutex_;
};

}  // namespace

CompiledFunction function_of(std::shared_ptr<const GraphModule> module,
                             std::shared_ptr<const GraphExecutor> executor) {
  auto function = std::make_shared<ModuleFunction>(std::move(module), std::move(executor));
  return [function](const std::vector<c10::IValue>& inputs) { return function->call(inputs); };
}

std::shared_ptr<const Graph> copy_of_graph(const GraphModule& module) {
  return module.graph().clone();
}

void warn_of_unknown_options(std::string_view backend, const CompilerOptions& options,
                             const std::vector<std::string_view>& known) {
  std::vector<std::string_view> unknown;
  for (const auto& [name, value] : options) {
    if (std::find(known.begin(), known.end(), name) == known.end()) unknown.push_back(name);
  }
  if (!unknown.empty())
    log(LogLevel::kWarning, "backend {}: ignores unknown options {}", backend, fmt::join(unknown, ", "));
}

}  // namespace halftone
