// The expected lifecycle_table(), row by row, with the condition of AITune's Backend class that each follows.
// Written from AITune's behaviour, not from our code.
#pragma once

#include <array>
#include <optional>

#include "halftone/backend/backend.h"

namespace halftone {

struct ExpectedCall {
  BackendState from;
  LifecycleCall call;
  std::optional<BackendState> to;
  const char* says;  ///< the condition in AITune, or ours where it has none
};

/// A row that says "here:" defines what AITune leaves open. Further additions:
/// - deploy() without a device keeps the stored one (AITune sets the one that it is given);
/// - is_active is true in ACTIVE only.
/// One message differs: AITune's deactivate() of a loaded checkpoint says "has already been deployed", which is
/// not true in that state. The condition is the same.
inline const std::array<ExpectedCall, 30>& expected_lifecycle() {
  using S = BackendState;
  using C = LifecycleCall;
  static constexpr auto kNo = std::nullopt;
  static const std::array<ExpectedCall, 30> rows{{
      {S::kInit, C::kBuild, S::kActive, "build: if self.state == BackendState.INIT … self.state = ACTIVE"},
      {S::kInit, C::kActivate, kNo, "activate: if INIT raise \"backend should be built first\""},
      {S::kInit, C::kDeactivate, kNo, "deactivate: if INIT raise \"backend should be built first\""},
      {S::kInit, C::kDeploy, kNo,
       "deploy: if != CHECKPOINT_LOADED raise \"should be loaded from a checkpoint\""},
      {S::kInit, C::kInfer, kNo, "infer: if != ACTIVE and != DEPLOYED raise \"should be activated first\""},
      {S::kInit, C::kToDict, kNo, "to_dict: if self._orig_module is None raise \"call build() first\""},

      {S::kActive, C::kBuild, kNo, "build: else raise \"build should be called only once\""},
      {S::kActive, C::kActivate, S::kActive, "activate: no branch takes ACTIVE; here: no-op when ACTIVE"},
      {S::kActive, C::kDeactivate, S::kInactive, "deactivate: if ACTIVE … self.state = INACTIVE"},
      {S::kActive, C::kDeploy, kNo, "deploy: if != CHECKPOINT_LOADED raise"},
      {S::kActive, C::kInfer, S::kActive, "infer: return self._infer(*args, **kwargs)"},
      {S::kActive, C::kToDict, S::kActive, "to_dict: _orig_module is there after build"},

      {S::kInactive, C::kBuild, kNo, "build: else raise \"build should be called only once\""},
      {S::kInactive, C::kActivate, S::kActive, "activate: if INACTIVE or CHECKPOINT_LOADED … state = ACTIVE"},
      {S::kInactive, C::kDeactivate, S::kInactive,
       "deactivate: no branch takes INACTIVE; here: no-op when INACTIVE"},
      {S::kInactive, C::kDeploy, kNo, "deploy: if != CHECKPOINT_LOADED raise"},
      {S::kInactive, C::kInfer, kNo,
       "infer: if != ACTIVE and != DEPLOYED raise \"should be activated first\""},
      {S::kInactive, C::kToDict, S::kInactive, "to_dict: _orig_module is there after build"},

      {S::kCheckpointLoaded, C::kBuild, kNo, "build: else raise \"build should be called only once\""},
      {S::kCheckpointLoaded, C::kActivate, S::kActive,
       "activate: if INACTIVE or CHECKPOINT_LOADED … state = ACTIVE"},
      {S::kCheckpointLoaded, C::kDeactivate, kNo, "deactivate: if CHECKPOINT_LOADED raise"},
      {S::kCheckpointLoaded, C::kDeploy, S::kDeployed, "deploy: self._deploy(); self.state = DEPLOYED"},
      {S::kCheckpointLoaded, C::kInfer, kNo, "infer: if != ACTIVE and != DEPLOYED raise"},
      {S::kCheckpointLoaded, C::kToDict, S::kCheckpointLoaded,
       "to_dict: from_dict sets backend._orig_module = module"},

      {S::kDeployed, C::kBuild, kNo, "build: else raise \"build should be called only once\""},
      {S::kDeployed, C::kActivate, kNo, "activate: if DEPLOYED raise \"backend is already deployed\""},
      {S::kDeployed, C::kDeactivate, kNo, "deactivate: if DEPLOYED raise \"backend is already deployed\""},
      {S::kDeployed, C::kDeploy, kNo, "deploy: if != CHECKPOINT_LOADED raise"},
      {S::kDeployed, C::kInfer, S::kDeployed, "infer: != ACTIVE and != DEPLOYED is false"},
      {S::kDeployed, C::kToDict, S::kDeployed, "to_dict: _orig_module is there after from_dict"},
  }};
  return rows;
}

/// The words of AITune's errors that ours keep, by call and state.
inline const char* expected_words(BackendState from, LifecycleCall call) {
  switch (call) {
    case LifecycleCall::kBuild:
      return "build should be called only once";
    case LifecycleCall::kDeploy:
      return "backend should be loaded from a checkpoint";
    case LifecycleCall::kInfer:
      return "should be activated first";
    case LifecycleCall::kToDict:
      return "built first";
    case LifecycleCall::kActivate:
    case LifecycleCall::kDeactivate:
      if (from == BackendState::kInit) return "backend should be built first";
      if (from == BackendState::kDeployed) return "backend is already deployed";
      return "backend";
  }
  return "";
}

}  // namespace halftone
