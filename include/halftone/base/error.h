// The one exception type of Halftone.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "halftone/base/api.h"

namespace halftone {

/// The kind of failure, for programs. The message is for users and always names the layer, node, file or
/// option.
enum class ErrorCode {
  kInvalidArgument,  ///< a caller gave a value that the call cannot take
  kNotFound,         ///< a name, key or file that does not exist
  kCorruptFile,      ///< bytes that break their format
  kUnsupported,      ///< well-formed, but not something this version does
  kIo,               ///< the operating system refused to read or write
  kState,            ///< a legal call at the wrong time
  kGuard,            ///< an input breaks a shape, dtype or range that the model was exported with
  kInternal,         ///< a defect in Halftone
};

/// "invalid argument", "corrupt file", …
HALFTONE_API std::string_view to_string(ErrorCode code);

/// Thrown by every call that fails. A call named `try_…` gives nullptr or an empty optional where there is nothing to find.
class HALFTONE_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

  /// The same error with `context + ": "` before its message; used by callers that know a better place name.
  Error with_context(std::string_view context) const;

 private:
  ErrorCode code_;
};

}  // namespace halftone
