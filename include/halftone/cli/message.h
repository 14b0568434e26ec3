// Unstable: for the command line only, may change in any version.
// Text from files in messages and terminals.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

#include "halftone/base/api.h"

namespace halftone {

/// Longer messages are cut: a file may hold names of megabytes and a million things that are wrong.
inline constexpr size_t kLongestMessage = 4000;

/// `text` as a message: control characters but line breaks and tabs spelled out as \xNN, and after
/// kLongestMessage bytes "… (N more bytes)". Errors of loading, findings, log lines and the messages of the
/// command line pass through it.
HALFTONE_API std::string bounded_message(std::string_view text);

/// "1 call", "2 calls".
template <std::integral Count>
std::string counted(Count count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

}  // namespace halftone
