#include "halftone/error.h"

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
  return Error(code_, std::string(context) + ": " + what());
}

}  // namespace halftone
