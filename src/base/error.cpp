// Error and its codes.
#include "halftone/base/error.h"

#include <cerrno>
#include <cstring>

#include "base/errors.h"
#include "halftone/cli/message.h"

namespace halftone {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kCorruptFile:
      return "corrupt file";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kIo:
      return "input/output error";
    case ErrorCode::kState:
      return "wrong state";
    case ErrorCode::kGuard:
      return "guard failed";
    case ErrorCode::kInternal:
      return "internal error";
  }
  return "unknown error";
}

Error Error::with_context(std::string_view context) const {
  return Error(code_, bounded_message(std::string(context) + ": " + what()));
}

void fail_errno(const std::string& path, std::string_view what, int error) {
  const ErrorCode code = error == ENOENT || error == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
  fail(code, "{}: {}: {}", path, what, std::strerror(error));
}

}  // namespace halftone
