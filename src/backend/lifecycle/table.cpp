#include "backend/lifecycle/table.h"

namespace halftone {

std::string_view to_string(BackendState state) {
  switch (state) {
    case BackendState::kInit:
      return "INIT";
    case BackendState::kActive:
      return "ACTIVE";
    case BackendState::kInactive:
      return "INACTIVE";
    case BackendState::kCheckpointLoaded:
      return "CHECKPOINT_LOADED";
    case BackendState::kDeployed:
      return "DEPLOYED";
  }
  return "?";
}

std::string_view to_string(LifecycleCall call) {
  switch (call) {
    case LifecycleCall::kBuild:
      return "build";
    case LifecycleCall::kActivate:
      return "activate";
    case LifecycleCall::kDeactivate:
      return "deactivate";
    case LifecycleCall::kDeploy:
      return "deploy";
    case LifecycleCall::kInfer:
      return "infer";
    case LifecycleCall::kToDict:
      return "to_dict";
  }
  return "?";
}

std::span<const Transition> lifecycle_table() {
  return lifecycle::kTable;
}

}  // namespace halftone
