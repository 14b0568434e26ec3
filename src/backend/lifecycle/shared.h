// The state that all handles of one backend share, and the calls that change it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/lifecycle/backend_access.h"
#include "backend/lifecycle/origin.h"
#include "backend/lifecycle/ready_call.h"
#include "backend/lifecycle/state_gate.h"

namespace halftone {

struct Backend::Shared {
  Shared(std::shared_ptr<const BackendRecipe> recipe, BackendState state);
  ~Shared();
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  void build(const ModelSource& model, const GraphSpec& spec, const std::vector<Sample>& new_samples,
             c10::Device new_device, const std::string& new_cache_dir);
  /// From an origin that was taken before. `made`: what the recipe made of it; nothing: it is asked to.
  void build(lifecycle::Origin new_origin, const std::vector<Sample>& new_samples, c10::Device new_device,
             const std::string& new_cache_dir, std::optional<ReadyModel> made);
  void activate();
  void deactivate();
  void deploy(std::optional<c10::Device> new_device);
  c10::IValue infer(std::vector<c10::IValue> args, std::map<std::string, c10::IValue> kwargs);
  Session session();
  BackendDict to_dict() const;

  const std::shared_ptr<const BackendRecipe> recipe;
  const std::string type;

  mutable std::mutex mutex;             ///< held by calls that change the state; guards what follows
  lifecycle::Origin origin;             ///< without a graph before build(), and if only `stored` is there
  std::shared_ptr<GraphModule> stored;  ///< converted already, from a file; or nullptr
  std::vector<Sample> samples;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  std::string cache_dir;
  std::string tuning;

  lifecycle::StateGate gate;
  /// There in the states in which infer() runs; read by those who passed the gate, without the mutex.
  std::unique_ptr<const lifecycle::ReadyCall> ready;

 private:
  /// Throws if the table refuses the call now, and if it would wait for its own infer(). Gives the
  /// state that the call ends in.
  BackendState require(LifecycleCall call) const;
  [[noreturn]] void refuse(BackendState state, LifecycleCall call) const;
  std::unique_ptr<const lifecycle::ReadyCall> prepare(c10::Device on) const;
  /// `take_origin` and `make` may throw: then nothing has changed, and the log says so.
  void build_with(const std::function<lifecycle::Origin()>& take_origin,
                  const std::function<ReadyModel(const lifecycle::Origin&)>& make,
                  const std::vector<Sample>& new_samples, c10::Device new_device,
                  const std::string& new_cache_dir);
};

}  // namespace halftone
