#include "runner.h"

#include "halftone/base/error.h"
#include "halftone/compile/compile.h"

namespace halftone::python {

std::unique_ptr<Session> Runner::take() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<Session>(module_, executor_);
  auto session = std::move(idle_.back());
  idle_.pop_back();
  return session;
}

void Runner::give_back(std::unique_ptr<Session> session) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(session));
}

c10::IValue Runner::operator()(const Sample& call) {
  std::call_once(compiled_, [this] {
    executor_ = compile(module_);
    auto first = std::make_unique<Session>(module_, executor_);
    if (first->state_names().empty()) {
      idle_.push_back(std::move(first));
    } else {
      with_state_ = std::move(first);
    }
  });
  if (with_state_) {
    const std::lock_guard turn(turns_);
    return (*with_state_)(call.args, call.kwargs);
  }
  std::unique_ptr<Session> session = take();
  const c10::IValue result = (*session)(call.args, call.kwargs);
  give_back(std::move(session));  // not after an error: a new one is cheap
  return result;
}

std::shared_ptr<const GraphExecutor> executor_of(const std::shared_ptr<GraphModule>& module,
                                                 const std::string& backend) {
  if (backend == "halftone") return compile(module);
  if (backend == "eager") return nullptr;
  throw Error(ErrorCode::kInvalidArgument, "backend is \"" + backend + "\"; it is \"halftone\" or \"eager\"");
}

}  // namespace halftone::python
