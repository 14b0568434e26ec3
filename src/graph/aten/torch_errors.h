// One place where the exceptions of torch and of the standard library become halftone::Error. c10::Error is a
// std::exception whose what() holds a backtrace of many lines.
#pragma once

#include <exception>
#include <string>

#include "halftone/base/error.h"
#include "halftone/graph/graph.h"

namespace halftone {

/// The message for people: without torch's backtrace.
std::string error_text(const std::exception& error);

/// "aten::add.Tensor (%sum) in layer "encoder.0"".
std::string place_of_node(const Node& node);

// The next two are for handlers: they throw what was caught as a halftone::Error.

/// With `place` before the message. Errors of our own keep their code; all others get `otherwise`.
[[noreturn]] void rethrow_at(const std::string& place, ErrorCode otherwise);

/// What becomes of errors of our own while a file is read.
enum class OwnErrors {
  kAsTheyAre,     ///< they name the file, and their codes are right
  kAboutTheFile,  ///< the path is put before them, and an invalid argument is a corrupt file
};
/// About a file: what torch refuses it refuses because of what the file says, and so for memory
/// (kCorruptFile). Anything else is kInternal. Messages are bounded, as text from files must be.
[[noreturn]] void rethrow_about_file(const std::string& path, OwnErrors own);

/// Runs `read`; what it throws is rethrown about the file.
template <typename Read>
auto guarded(const std::string& path, Read read, OwnErrors own = OwnErrors::kAboutTheFile)
    -> decltype(read()) {
  try {
    return read();
  } catch (const std::exception&) {
    rethrow_about_file(path, own);
  }
}

}  // namespace halftone
