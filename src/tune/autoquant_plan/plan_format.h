// The first bytes of plan files.
#pragma once

#include <cstdint>

namespace halftone {

inline constexpr const char* kPlanFormat = "halftone-autoquant-plan";
inline constexpr int64_t kPlanVersion = 1;

}  // namespace halftone
