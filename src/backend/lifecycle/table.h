// The lifecycle as data: what each call does in each state. Code, docs and tests all go by it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "halftone/backend/backend.h"

namespace halftone::lifecycle {

inline constexpr size_t kStates = 5;
inline constexpr size_t kCalls = 6;

namespace table_detail {
using S = BackendState;
using C = LifecycleCall;
inline constexpr std::string_view kUnbuilt = "backend should be built first";
inline constexpr std::string_view kOnce = "build should be called only once";
inline constexpr std::string_view kDeployed = "backend is already deployed";
inline constexpr std::string_view kNotActive = "backend should be activated first";
inline constexpr std::string_view kNoCheckpoint = "backend should be loaded from a checkpoint";
}  // namespace table_detail

/// By state, then by call, both in the order of their enumerations.
inline constexpr std::array<Transition, kStates* kCalls> kTable = [] {
  using namespace table_detail;
  constexpr auto no = std::nullopt;
  return std::array<Transition, kStates * kCalls>{{
      {S::kInit, C::kBuild, S::kActive, {}},
      {S::kInit, C::kActivate, no, kUnbuilt},
      {S::kInit, C::kDeactivate, no, kUnbuilt},
      {S::kInit, C::kDeploy, no, kNoCheckpoint},
      {S::kInit, C::kInfer, no, kNotActive},
      {S::kInit, C::kToDict, no, kUnbuilt},

      {S::kActive, C::kBuild, no, kOnce},
      {S::kActive, C::kActivate, S::kActive, {}},
      {S::kActive, C::kDeactivate, S::kInactive, {}},
      {S::kActive, C::kDeploy, no, kNoCheckpoint},
      {S::kActive, C::kInfer, S::kActive, {}},
      {S::kActive, C::kToDict, S::kActive, {}},

      {S::kInactive, C::kBuild, no, kOnce},
      {S::kInactive, C::kActivate, S::kActive, {}},
      {S::kInactive, C::kDeactivate, S::kInactive, {}},
      {S::kInactive, C::kDeploy, no, kNoCheckpoint},
      {S::kInactive, C::kInfer, no, kNotActive},
      {S::kInactive, C::kToDict, S::kInactive, {}},

      {S::kCheckpointLoaded, C::kBuild, no, kOnce},
      {S::kCheckpointLoaded, C::kActivate, S::kActive, {}},
      {S::kCheckpointLoaded, C::kDeactivate, no, kNotActive},
      {S::kCheckpointLoaded, C::kDeploy, S::kDeployed, {}},
      {S::kCheckpointLoaded, C::kInfer, no, kNotActive},
      {S::kCheckpointLoaded, C::kToDict, S::kCheckpointLoaded, {}},

      {S::kDeployed, C::kBuild, no, kOnce},
      {S::kDeployed, C::kActivate, no, kDeployed},
      {S::kDeployed, C::kDeactivate, no, kDeployed},
      {S::kDeployed, C::kDeploy, no, kNoCheckpoint},
      {S::kDeployed, C::kInfer, S::kDeployed, {}},
      {S::kDeployed, C::kToDict, S::kDeployed, {}},
  }};
}();

constexpr const Transition& transition(BackendState state, LifecycleCall call) {
  return kTable[static_cast<size_t>(state) * kCalls + static_cast<size_t>(call)];
}

constexpr bool is_complete_and_in_order() {
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<size_t>(kTable[i].from) != i / kCalls) return false;
    if (static_cast<size_t>(kTable[i].call) != i % kCalls) return false;
    if (kTable[i].to.has_value() != kTable[i].reason.empty()) return false;
  }
  return true;
}
static_assert(is_complete_and_in_order());

/// A bit for each state in which infer() may run: what the hot path looks at.
inline constexpr uint64_t kInferStates = [] {
  uint64_t mask = 0;
  for (const Transition& entry : kTable) {
    if (entry.call == LifecycleCall::kInfer && entry.to)
      mask |= uint64_t{1} << static_cast<size_t>(entry.from);
  }
  return mask;
}();

}  // namespace halftone::lifecycle
