// Session: one stream of calls, with the model's state.
#include <ATen/core/grad_mode.h>

#include "base/errors.h"
#include "graph/run/graph_call.h"
#include "graph/run/interpreter.h"
#include "halftone/graph/graph_module.h"

namespace halftone {
namespace {

/// Marks the session as busy while a call runs.
class BusyMark {
 public:
  explicit BusyMark(std::atomic<bool>& flag, const std::string& model) : flag_(flag) {
    if (flag_.exchange(true)) fail(ErrorCode::kState, "{}: another call is running in this session", model);
  }
  ~BusyMark() { flag_ = false; }
  BusyMark(const BusyMark&) = delete;
  BusyMark& operator=(const BusyMark&) = delete;

 private:
  std::atomic<bool>& flag_;
};

}  // namespace

Session::Session(std::shared_ptr<const GraphModule> module, std::shared_ptr<const GraphExecutor> executor)
    : module_(required(std::move(module), "Session: the module")),
      tensors_(module_->tensors()),
      executor_(executor ? std::move(executor) : module_->interpreter()),
      input_check_(std::make_unique<const InputCheck>(*module_)) {
  reset();
}
Session::~Session() = default;

void Session::reset() {
  const BusyMark busy(busy_, module_->name);
  state_ = copy_of_state(module_->name, executor_->graph(), *tensors_);
}

std::vector<std::string> Session::state_names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state_) names.push_back(name);
  return names;
}

at::Tensor Session::state(std::string_view buffer) const {
  const auto found = state_.find(buffer);
  if (found == state_.end())
    fail(ErrorCode::kNotFound, "{}: \"{}\" is no state of this model", module_->name, buffer);
  return found->second;
}

void Session::set_node_hook(NodeHook hook) {
  hook_ = std::move(hook);
}

std::vector<c10::IValue> Session::run(std::vector<c10::IValue> inputs) {
  const BusyMark busy(busy_, module_->name);
  const at::NoGradGuard no_grad;
  return call_graph({module_->name, *input_check_, *executor_, *tensors_}, inputs, state_,
                    hook_ ? &hook_ : nullptr);
}

c10::IValue Session::operator()(std::vector<c10::IValue> args, std::map<std::string, c10::IValue> kwargs) {
  const CallSpec& call = module_->call_spec();
  return unflatten(call.result, run(flatten_call(call, std::move(args), std::move(kwargs))));
}

}  // namespace halftone
