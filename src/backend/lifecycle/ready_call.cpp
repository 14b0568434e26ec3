#include "backend/lifecycle/ready_call.h"

#include <ATen/core/grad_mode.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/errors.h"
#include "graph/run/interpreter.h"
#include "quant/weight/packing_cache.h"

namespace halftone::lifecycle {
namespace {

std::shared_ptr<GraphModule> prepared(std::shared_ptr<GraphModule> module) {
  if (!module) fail(ErrorCode::kInternal, "the backend prepared no module");
  return module;
}

/// To the system, as far as glibc can: freed memory stays resident otherwise.
void return_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace

ReadyCall::ReadyCall(ReadyModel model)
    : module_(prepared(std::move(model.module))),
      tensors_(module_->tensors()),
      executor_(model.executor ? std::move(model.executor)
                               : std::make_shared<const InterpretedGraph>(module_->graph().clone())),
      check_(*module_),
      state_(copy_of_state(module_->name, executor_->graph(), *tensors_)) {
  return_memory();  // what converting the weights took meanwhile
}

c10::IValue ReadyCall::operator()(std::vector<c10::IValue> args,
                                  std::map<std::string, c10::IValue> kwargs) const {
  const std::vector<c10::IValue> inputs =
      flatten_call(module_->call_spec(), std::move(args), std::move(kwargs));
  if (state_.empty()) return call(inputs);
  const std::lock_guard lock(turn_);
  return call(inputs);
}

c10::IValue ReadyCall::call(const std::vector<c10::IValue>& inputs) const {
  const at::NoGradGuard no_grad;
  return unflatten(module_->call_spec().result,
                   call_graph({module_->name, check_, *executor_, *tensors_}, inputs, state_));
}

void release(std::unique_ptr<const ReadyCall> ready) {
  if (!ready) return;
  // Panels belong to the weights' memory, which the original module may share and keep alive. Another model
  // made of the same tensors has its own hold on those it uses.
  for (const auto& [name, tensor] : *ready->module()->tensors()) {
    if (tensor.has_storage()) forget_packed(tensor);
  }
  ready.reset();
  packing_cache_stats();  // purges the panels of tensors that are gone now
  return_memory();
}

}  // namespace halftone::lifecycle
