// The internals of a Backend, for the components that save, load and tune one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "halftone/backend/backend.h"

namespace halftone {

struct BackendContent {
  std::shared_ptr<const BackendRecipe> recipe;
  BackendState state = BackendState::kInit;
  std::shared_ptr<const GraphModule> original;  ///< nullptr if only `ready` was stored
  std::shared_ptr<GraphModule> ready;           ///< converted; nullptr if nothing is ready (INACTIVE)
  std::vector<Sample> samples;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  std::string tuning;  ///< JSON, or empty
};

struct BackendAccess {
  /// A consistent copy; the modules are shared. Waits for a call that changes the state.
  static BackendContent content(const Backend& backend);
  /// In CHECKPOINT_LOADED. `original` or `ready` must be there; `ready` is taken as it is by prepare().
  static Backend loaded(BackendContent content);
  /// In ACTIVE, as build() makes it, from what `source` was built from: nothing is captured again. `made` is
  /// what `recipe` made of it before; nothing: it is prepared here. Errors as build()'s.
  static Backend built_like(const Backend& source, std::shared_ptr<const BackendRecipe> recipe,
                            std::optional<ReadyModel> made, const std::string& cache_dir);
  static void set_tuning(const Backend& backend, std::string json);
};

}  // namespace halftone
