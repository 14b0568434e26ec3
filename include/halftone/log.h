// Where the library's messages go. The library never prints: the default sink drops everything, programs
// install their own.
#pragma once

#include <functional>
#include <string_view>

namespace halftone {

enum class LogLevel { kDebug, kInfo, kWarning };

using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Replaces the process-wide sink (empty: drop). Thread-safe; a message under way may still reach the old
/// sink.
void set_log_sink(LogSink sink);

}  // namespace halftone
