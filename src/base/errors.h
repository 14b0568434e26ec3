// Short ways to throw a halftone::Error with a formatted message.
#pragma once

#include <fmt/format.h>

#include "halftone/base/error.h"

namespace halftone {

template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

/// The handle or function; kInvalidArgument, "{what} is null", if it is empty.
template <typename Handle>
Handle required(Handle handle, std::string_view what) {
  if (!handle) fail(ErrorCode::kInvalidArgument, "{} is null", what);
  return handle;
}

/// Throws "path: what: the system's text for `error`"; kNotFound if there is no such file or folder, else
/// kIo.
[[noreturn]] void fail_errno(const std::string& path, std::string_view what, int error);

}  // namespace halftone
