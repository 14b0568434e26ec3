#include "base/log.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>

#include "halftone/cli/message.h"

namespace halftone {
namespace {

void write_to_stderr(LogLevel level, std::string_view message) {
  if (level < LogLevel::kWarning) return;
  std::string line =
      fmt::format("halftone: {}: {}", level == LogLevel::kWarning ? "warning" : "error", message);
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  // One call, so that lines of several threads do not mix.
  std::fwrite(line.data(), 1, line.size(), stderr);
}

struct Sink {
  std::mutex mutex;
  std::shared_ptr<const LogSink> sink = std::make_shared<const LogSink>(write_to_stderr);
};

/// Never destroyed: threads may log while the process ends.
Sink& global() {
  static Sink& sink = *new Sink();
  return sink;
}

}  // namespace

LogSink default_log_sink() {
  return write_to_stderr;
}

void set_log_sink(LogSink sink) {
  auto fresh = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  const std::lock_guard lock(global().mutex);
  global().sink = std::move(fresh);
}

void log_message(LogLevel level, std::string_view message) {
  std::shared_ptr<const LogSink> sink;
  {
    const std::lock_guard lock(global().mutex);
    sink = global().sink;
  }
  // Called outside the lock: a sink may log, or replace the sink.
  if (sink) (*sink)(level, bounded_message(message));
}

}  // namespace halftone
