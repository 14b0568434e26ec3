#include "backend/refuse_gradients.h"

#include <c10/core/GradMode.h>

#include "backend/module_function.h"
#include "base/errors.h"

namespace halftone {
namespace {

bool requires_grad(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().requires_grad();
}

/// Native kernels have no gradients: where some are asked for, cutting them off silently would be worse than
/// failing.
void check_no_gradients(const Graph& graph, const ExecutorCall& call) {
  if (!c10::GradMode::is_enabled()) return;
  size_t user = 0;
  for (const GraphInput& input : graph.inputs()) {
    c10::IValue value;
    if (input.kind == InputKind::kUser) {
      value = call.inputs[user++];
    } else if (const auto found = call.tensors.find(input.target); found != call.tensors.end()) {
      value = found->second;
    }
    if (requires_grad(value)) {
      fail(ErrorCode::kUnsupported,
           "backend halftone: {} \"{}\" requires gradients, which this backend does not give: give the "
           "backend to AotAutograd, or call without gradients (at::NoGradGuard)",
           to_string(input.kind), input.target);
    }
  }
}

class InferenceExecutor final : public GraphExecutor {
 public:
  InferenceExecutor(std::shared_ptr<const Graph> original, std::shared_ptr<const GraphExecutor> executor)
      : original_(std::move(original)), executor_(std::move(executor)) {}

  std::vector<c10::IValue> run(const ExecutorCall& call) const override {
    check_no_gradients(*original_, call);
    return executor_->run(
        call);  // in the caller's grad mode: some operators keep more for backward where it is on
  }
  const Graph& graph() const override { return executor_->graph(); }

 private:
  std::shared_ptr<const Graph> original_;
  std::shared_ptr<const GraphExecutor> executor_;
};

}  // namespace

std::shared_ptr<const GraphExecutor> refuse_gradients(const GraphModule& module,
                                                      std::shared_ptr<const GraphExecutor> executor) {
  return std::make_shared<const InferenceExecutor>(copy_of_graph(module), std::move(executor));
}

}  // namespace halftone
