// Whatever a file makes the readers below throw, as a halftone::Error that names the file.
#pragma once

#include <c10/util/Exception.h>

#include <new>
#include <string>

#include "base/errors.h"
#include "halftone/message.h"

namespace halftone {

/// Runs `read`. Text and values from the file that something refuses as an invalid argument are a corrupt
/// file.
template <typename Read>
auto guarded(const std::string& path, Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const Error& error) {
    const std::string message = error.what();
    const ErrorCode code =
        error.code() == ErrorCode::kInvalidArgument ? ErrorCode::kCorruptFile : error.code();
    throw Error(code, bounded_message(message.starts_with(path) ? message : path + ": " + message));
  } catch (const c10::Error& error) {
    throw Error(ErrorCode::kCorruptFile, bounded_message(path + ": " + error.what_without_backtrace()));
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::kCorruptFile, "{}: not enough memory for what the file describes", path);
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kInternal, bounded_message(path + ": " + error.what()));
  }
}

}  // namespace halftone
