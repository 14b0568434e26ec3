#include <ATen/core/grad_mode.h>

#include "base/errors.h"
#include "graph/input_check.h"
#include "graph/interpreter.h"
#include "graph/mutation.h"
#include "halftone/graph_module.h"

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
    : module_(std::move(module)),
      tensors_(module_->tensors()),
      executor_(executor ? std::move(executor) : module_->interpreter()),
      input_check_(std::make_unique<const InputCheck>(*module_)) {
  reset();
}
Session::~Session() = default;

void Session::reset() {
  const BusyMark busy(busy_, module_->name);
  state_.clear();
  // Tensors that share storage in the model (tied buffers) must share it in the state too.
  std::map<const void*, at::Tensor> clones;
  for (const std::string& name : mutated_tensor_names(executor_->graph())) {
    const auto found = tensors_->find(name);
    if (found == tensors_->end())
      fail(ErrorCode::kNotFound, "{}: the graph writes \"{}\", which has no tensor", module_->name, name);
    at::Tensor& clone = clones[found->second.unsafeGetTensorImpl()];
    if (!clone.defined()) clone = found->second.detach().clone();
    state_[name] = clone;
  }
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

std::vector<c10::IValue> Session::apply_mutations(std::vector<c10::IValue> outputs,
                                                  const std::vector<c10::IValue>& user_inputs) {
  return halftone::apply_mutations(executor_->graph(), std::move(outputs), user_inputs, state_);
}

std::vector<c10::IValue> Session::run(std::vector<c10::IValue> inputs) {
  const BusyMark busy(busy_, module_->name);
  const at::NoGradGuard no_grad;
  try {
    const SymbolBindings bindings = input_check_->check(inputs);
    auto outputs = executor_->run({inputs, *tensors_, state_, bindings, hook_ ? &hook_ : nullptr});
    return apply_mutations(std::move(outputs), inputs);
  } catch (const Error& error) {
    throw error.with_context(module_->name);
  } catch (const c10::Error& error) {
    fail(ErrorCode::kInternal, "{}: {}", module_->name, error.what_without_backtrace());
  }
}

c10::IValue Session::operator()(std::vector<c10::IValue> args, std::map<std::string, c10::IValue> kwargs) {
  const CallSpec& call = module_->call_spec();
  std::vector<c10::IValue> inputs =
      flatten(call.args, c10::ivalue::Tuple::create(std::move(args)), "arguments");
  c10::impl::GenericDict named(c10::StringType::get(), c10::AnyType::get());
  for (auto& [name, value] : kwargs) named.insert(name, std::move(value));
  for (auto& leaf : flatten(call.kwargs, named, "keyword arguments")) inputs.push_back(std::move(leaf));
  return unflatten(call.result, run(std::move(inputs)));
}

}  // namespace halftone
