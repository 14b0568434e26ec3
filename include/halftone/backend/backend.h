// Stateful backends: built once from a model, activated and deactivated, saved, loaded, deployed.
// docs/lifecycle.md.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/backend/recipes.h"
#include "halftone/base/api.h"
#include "halftone/capture/capture_module.h"
#include "halftone/graph/graph_module.h"
#include "halftone/graph/sample.h"

namespace halftone {

enum class BackendState { kInit, kActive, kInactive, kCheckpointLoaded, kDeployed };
HALFTONE_API std::string_view to_string(BackendState state);  ///< "INIT", "CHECKPOINT_LOADED", …

enum class LifecycleCall { kBuild, kActivate, kDeactivate, kDeploy, kInfer, kToDict };
HALFTONE_API std::string_view to_string(LifecycleCall call);  ///< "build", "to_dict", …

/// The effect of a call in a state. `to` is `from` if the call changes nothing.
struct Transition {
  BackendState from;
  LifecycleCall call;
  std::optional<BackendState> to;  ///< nothing: refused (kState)
  std::string_view reason;         ///< of a refusal: "backend should be built first"
};
/// Every pair of state and call once. The code follows this table, the docs show it and the tests check every
/// pair.
HALFTONE_API std::span<const Transition> lifecycle_table();

/// How a C++ module becomes a graph. Captured graphs have their own names and dynamic sizes: it must be empty
/// for them, but for the name.
struct GraphSpec {
  std::string name;                      ///< of the model, for messages and files
  std::vector<std::string> input_names;  ///< of the tensors among the arguments
  std::vector<DynamicDim> dynamic;
};

/// The model of a backend: a captured graph, or a C++ module with the function that calls it.
struct HALFTONE_API ModelSource {
  ModelSource(std::shared_ptr<GraphModule> graph);  // NOLINT(google-explicit-constructor)
  ModelSource(std::shared_ptr<torch::nn::Module> module, ForwardFunction forward);
  std::shared_ptr<GraphModule> graph;         ///< or nullptr
  std::shared_ptr<torch::nn::Module> module;  ///< or nullptr
  ForwardFunction forward;
};

/// A backend as plain data. `module` is the state of the model that it was built from, before any conversion.
struct HALFTONE_API BackendDict {
  std::string type;    ///< "QuantBackend"
  std::string config;  ///< canonical JSON
  TensorMap module;
  std::vector<Sample> data;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  GraphSpec spec;  ///< how a C++ module is captured again
};

/// Names that from_dict could not use.
struct DictReport {
  std::vector<std::string> missing;     ///< the module has it, the dict has not: it keeps its value
  std::vector<std::string> unexpected;  ///< the dict has it, the module has not
};

/// A handle: copies share one backend, and its state. All calls are safe from several threads. A call that
/// changes the state waits for calls of infer() that run; later ones see the new state. So infer() must not
/// make such a call on its own backend.
///
/// Refused calls throw kState with the backend's name and state. Nothing changes then.
class HALFTONE_API Backend {
 public:
  /// In state INIT.
  explicit Backend(std::shared_ptr<const BackendRecipe> recipe);
  /// A registered type by its name; see recipes.h.
  explicit Backend(std::string_view type, std::string_view config_json = "{}");

  /// Only once, only in INIT; ends ACTIVE and returns this handle. Checks the device first (kUnsupported
  /// if this build has none such). A C++ module is called once, with the first sample, and its tensors and
  /// the random state are restored. If `spec` or samples of several sizes ask for dynamic sizes, it is
  /// called at each of these sizes and at more that are generated (capture_module.h); everything is restored
  /// each time. A graph is not called. Samples that do not fit the model are an error. On an error: a warning
  /// in the log, the error is thrown again, and the state is still INIT.
  /// `cache_dir`: folder in which a backend may keep its results, by model and config; empty: none.
  Backend build(const ModelSource& model, const GraphSpec& spec, const std::vector<Sample>& samples,
                c10::Device device = c10::Device(c10::DeviceType::CPU), const std::string& cache_dir = {});
  /// From INACTIVE and CHECKPOINT_LOADED; nothing happens in ACTIVE.
  void activate();
  /// Only from ACTIVE; frees the converted model. Nothing happens in INACTIVE.
  void deactivate();
  /// Only from CHECKPOINT_LOADED, and final. Without a device: the one that was stored.
  void deploy(std::optional<c10::Device> device = std::nullopt);
  /// Only in ACTIVE and DEPLOYED. As the model would be called; without gradients. State that the model
  /// keeps between calls (a key-value cache) persists from call to call, is reset by activate() and deploy(),
  /// and makes calls take turns; calls of other models run concurrently.
  c10::IValue infer(std::vector<c10::IValue> args, std::map<std::string, c10::IValue> kwargs = {}) const;
  /// A stream of calls with flat inputs and a state of its own, apart from infer()'s. Only in ACTIVE and
  /// DEPLOYED. It keeps the model alive, even if the backend is deactivated.
  Session session() const;

  BackendState state() const;
  bool is_active() const;    ///< in ACTIVE only, not in DEPLOYED
  std::string name() const;  ///< the recipe's type: "QuantBackend"
  c10::Device device() const;
  /// "QuantBackend(quantization_config=Int4WeightOnlyConfig(group_size=64))": what differs from the defaults.
  std::string describe() const;
  std::string key() const;     ///< the type and a hash of the config: the same for equal configs
  std::string config() const;  ///< canonical JSON
  /// The config as a readable file.
  void config_to_json(const std::string& path) const;
  /// How it was tuned, as JSON; empty if it was not.
  std::string tuning() const;

  /// kState before build(). kUnsupported if the original module does not exist any more: a file
  /// with converted weights only.
  BackendDict to_dict() const;
  /// In CHECKPOINT_LOADED. kInvalidArgument for a type that is not registered and if there is no module;
  /// otherwise the module takes the tensors that both have (kInvalidArgument if shapes differ, and then
  /// the module is as it was), and `report` says what was left. `type`: the one that the caller expects;
  /// another one in the dict is kInvalidArgument.
  static Backend from_dict(const std::optional<ModelSource>& module, const BackendDict& dict,
                           std::string_view type, DictReport* report = nullptr);

  struct Shared;

 private:
  friend struct BackendAccess;
  explicit Backend(std::shared_ptr<Shared> shared);
  std::shared_ptr<Shared> shared_;
};

}  // namespace halftone
