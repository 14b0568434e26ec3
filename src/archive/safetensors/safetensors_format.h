// The format of safetensors, for its reader and its writer.
#pragma once

#include <cstddef>

namespace halftone {

constexpr size_t kSafetensorsLengthSize = 8;               // bytes before the header, its length
constexpr size_t kLongestSafetensorsHeader = 100'000'000;  // the format's own limit

}  // namespace halftone
