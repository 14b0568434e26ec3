// BaselineModel: one caller's view of a core.
#include <atomic>

#include "base/errors.h"
#include "compat/core.h"
#include "halftone/compat/baseline_compile.h"

namespace halftone {

using baseline::Core;

struct BaselineModel::State {
  std::shared_ptr<const GraphModule> module;
  BaselineOptions options;
  std::shared_ptr<const Core> first;  ///< keeps graph() alive
  mutable std::atomic<std::shared_ptr<Core>> core;

  /// A core that belongs to another model reads that model's weights: when those are changed in place, this
  /// model's are not, and it gets a core of its own.
  std::shared_ptr<Core> current() const {
    auto now = core.load();
    if (now->module() == module || now->unchanged()) return now;
    now = baseline::core_for(module, options);
    core.store(now);
    return now;
  }
};

BaselineModel::BaselineModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
BaselineModel::~BaselineModel() = default;

std::shared_ptr<const CompiledGraph> BaselineModel::compiled_for(
    const std::vector<c10::IValue>& inputs) const {
  return state_->current()->model_for(inputs, [&](const CompiledGraph& model) { model.run(inputs); });
}

std::vector<c10::IValue> BaselineModel::run(const std::vector<c10::IValue>& inputs) const {
  return compiled_for(inputs)->run(inputs);
}

std::vector<c10::IValue> BaselineModel::run(const ExecutorCall& call) const {
  const ExecutorCall unwatched{call.inputs, call.tensors, call.state, call.bindings};
  const auto model = state_->current()->model_for(
      call.inputs, [&](const CompiledGraph& candidate) { candidate.run(unwatched); });
  return model->run(call);
}

const Graph& BaselineModel::graph() const {
  return state_->first->start()->graph();
}

PlanReport BaselineModel::report(const std::vector<c10::IValue>& inputs) const {
  const auto model = compiled_for(inputs);
  PlanReport report = model->report(inputs);
  if (state_->options.readable_kernel_names) use_readable_names(model->graph(), report);
  return report;
}

Profile BaselineModel::profile(const std::vector<c10::IValue>& inputs, const ProfileOptions& options) const {
  const auto model = compiled_for(inputs);
  Session session(state_->module, model);
  Profile profile = halftone::profile(session, *model, inputs, options);
  if (state_->options.readable_kernel_names) use_readable_names(model->graph(), profile);
  return profile;
}

std::vector<SearchReport> BaselineModel::searches() const {
  return state_->current()->searches();
}

std::vector<std::string> BaselineModel::notes() const {
  return state_->current()->notes();
}

const BaselineOptions& BaselineModel::options() const {
  return state_->options;
}

std::shared_ptr<const BaselineModel> baseline_compile(std::shared_ptr<const GraphModule> module,
                                                      const BaselineOptions& options) {
  required(module, "baseline_compile: the module");
  auto state = std::make_unique<BaselineModel::State>();
  const std::shared_ptr<Core> core = baseline::core_for(module, options);
  state->first = core;
  state->core = core;
  state->module = std::move(module);
  state->options = options;
  return std::shared_ptr<const BaselineModel>(new BaselineModel(std::move(state)));
}

}  // namespace halftone
