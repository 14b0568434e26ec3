// The sink of the library's messages: warnings and errors go to stderr, one line each, unless a program
// installs a sink of its own. Nothing is ever written to stdout.
#pragma once

#include <functional>
#include <string_view>

#include "halftone/base/api.h"

namespace halftone {

enum class LogLevel {
  kDebug,
  kInfo,
  kWarning,  ///< the call goes on, but not as the caller may expect
  kError,    ///< a failure that is reported to no caller
};

using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Replaces the process-wide sink; an empty one drops everything. Thread-safe; a message under way may still
/// reach the old sink.
HALFTONE_API void set_log_sink(LogSink sink);

/// The default sink: "halftone: warning: …" and "halftone: error: …" on stderr;
/// other levels are dropped. Line breaks in a message become blanks.
HALFTONE_API LogSink default_log_sink();

}  // namespace halftone
