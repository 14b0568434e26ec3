#include "base/log.h"

#include <memory>
#include <mutex>

#include "halftone/message.h"

namespace halftone {
namespace {
std::mutex g_mutex;
std::shared_ptr<const LogSink> g_sink;
}  // namespace

void set_log_sink(LogSink sink) {
  auto fresh = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  const std::lock_guard lock(g_mutex);
  g_sink = std::move(fresh);
}

void log_message(LogLevel level, std::string_view message) {
  std::shared_ptr<const LogSink> sink;
  {
    const std::lock_guard lock(g_mutex);
    sink = g_sink;
  }
  // Called outside the lock: a sink may log, or replace the sink.
  if (sink) (*sink)(level, bounded_message(message));
}

}  // namespace halftone
