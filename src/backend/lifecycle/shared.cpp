#include "backend/lifecycle/shared.h"

#include "base/errors.h"
#include "base/log.h"

namespace halftone {
namespace {

void require_device(c10::Device device) {
  if (!device.is_cpu())
    fail(ErrorCode::kUnsupported, "there is no device {} in this build, only cpu", device.str());
}

/// Runs a step; its errors name the backend.
template <typename Step>
auto named(const std::string& type, Step step) {
  try {
    return step();
  } catch (const Error& error) {
    throw error.with_context(type);
  } catch (const c10::Error& error) {
    fail(ErrorCode::kInternal, "{}: {}", type, error.what_without_backtrace());
  }
}

}  // namespace

Backend::Shared::Shared(std::shared_ptr<const BackendRecipe> backend_recipe, BackendState state)
    : recipe(std::move(backend_recipe)), type(recipe->type()), gate(state) {}

Backend::Shared::~Shared() {
  try {
    release(std::move(ready));
  } catch (const std::exception& error) {
    log(LogLevel::kError, "backend {}: packed weights were not freed: {}", type, error.what());
  }
}

void Backend::Shared::refuse(BackendState state, LifecycleCall call) const {
  fail(ErrorCode::kState, "cannot {} backend {} in state {}: {}", to_string(call), type, to_string(state),
       lifecycle::transition(state, call).reason);
}

BackendState Backend::Shared::require(LifecycleCall call) const {
  const BackendState state = gate.state();
  const std::optional<BackendState> to = lifecycle::transition(state, call).to;
  if (!to) refuse(state, call);
  if (*to != state && lifecycle::StateGate::InFlightGuard::is_inside(gate)) {
    fail(ErrorCode::kState, "cannot {} backend {} in state {}: this thread is inside its infer()",
         to_string(call), type, to_string(state));
  }
  return *to;
}

std::unique_ptr<const lifecycle::ReadyCall> Backend::Shared::prepare(c10::Device on) const {
  return named(type, [&] {
    require_device(on);
    const std::shared_ptr<const GraphModule> model = stored ? stored : origin.graph;
    return std::make_unique<const lifecycle::ReadyCall>(recipe->prepare(model, samples, cache_dir));
  });
}

void Backend::Shared::build(const ModelSource& model, const GraphSpec& spec,
                            const std::vector<Sample>& new_samples, c10::Device new_device,
                            const std::string& new_cache_dir) {
  build_with(
      [&] { return lifecycle::take_origin(model, spec, new_samples); },
      [&](const lifecycle::Origin& from) { return recipe->prepare(from.graph, new_samples, new_cache_dir); },
      new_samples, new_device, new_cache_dir);
}

void Backend::Shared::build(lifecycle::Origin new_origin, const std::vector<Sample>& new_samples,
                            c10::Device new_device, const std::string& new_cache_dir,
                            std::optional<ReadyModel> made) {
  build_with([&] { return std::move(new_origin); },
             [&](const lifecycle::Origin& from) {
               return made ? *std::move(made) : recipe->prepare(from.graph, new_samples, new_cache_dir);
             },
             new_samples, new_device, new_cache_dir);
}

void Backend::Shared::build_with(const std::function<lifecycle::Origin()>& take_origin,
                                 const std::function<ReadyModel(const lifecycle::Origin&)>& make,
                                 const std::vector<Sample>& new_samples, c10::Device new_device,
                                 const std::string& new_cache_dir) {
  const std::lock_guard lock(mutex);
  const BackendState to = require(LifecycleCall::kBuild);
  try {
    named(type, [&] {
      require_device(new_device);
      lifecycle::Origin new_origin = take_origin();
      auto new_ready = std::make_unique<const lifecycle::ReadyCall>(make(new_origin));
      // Nothing fails from here on but for memory.
      samples = new_samples;
      cache_dir = new_cache_dir;
      device = new_device;
      origin = std::move(new_origin);
      ready = std::move(new_ready);
    });
  } catch (const std::exception& error) {
    log(LogLevel::kWarning, "failed to build backend {}: {}", type, error.what());
    throw;
  }
  gate.set_state(to);
}

void Backend::Shared::activate() {
  const std::lock_guard lock(mutex);
  const BackendState to = require(LifecycleCall::kActivate);
  if (to == gate.state()) return;
  ready = prepare(device);
  gate.set_state(to);
}

void Backend::Shared::deactivate() {
  const std::lock_guard lock(mutex);
  const BackendState to = require(LifecycleCall::kDeactivate);
  if (to == gate.state()) return;
  gate.set_state(to);
  gate.wait_until_empty();
  release(std::move(ready));
}

void Backend::Shared::deploy(std::optional<c10::Device> new_device) {
  const std::lock_guard lock(mutex);
  const BackendState to = require(LifecycleCall::kDeploy);
  ready = prepare(new_device.value_or(device));
  device = new_device.value_or(device);
  gate.set_state(to);
}

c10::IValue Backend::Shared::infer(std::vector<c10::IValue> args, std::map<std::string, c10::IValue> kwargs) {
  const lifecycle::StateGate::InFlightGuard guard(gate);
  if (!guard.entered()) refuse(guard.seen(), LifecycleCall::kInfer);
  return (*ready)(std::move(args), std::move(kwargs));
}

Session Backend::Shared::session() {
  const lifecycle::StateGate::InFlightGuard guard(gate);
  if (!guard.entered()) refuse(guard.seen(), LifecycleCall::kInfer);
  return Session(ready->module(), ready->executor());
}

}  // namespace halftone
