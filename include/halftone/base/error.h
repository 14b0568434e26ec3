// The one exception type of Halftone, and Result<T> for calls whose failure is expected.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

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
std::string_view to_string(ErrorCode code);

/// Thrown by every call that is not named `try_…`.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

  /// The same error with `context + ": "` before its message; used by callers that know a better place name.
  Error with_context(std::string_view context) const;

 private:
  ErrorCode code_;
};

/// Either a T or the Error that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  /// The value; throws the error if there is none.
  T& value() & { return check(), std::get<0>(state_); }
  const T& value() const& { return check(), std::get<0>(state_); }
  T&& value() && { return check(), std::get<0>(std::move(state_)); }

  /// Only if !ok().
  const Error& error() const { return std::get<1>(state_); }

 private:
  void check() const {
    if (!ok()) throw std::get<1>(state_);
  }
  std::variant<T, Error> state_;
};

}  // namespace halftone
