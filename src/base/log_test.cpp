#include "base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace halftone {
namespace {

TEST(Log, GoesToTheSinkAndNowhereElse) {
  std::vector<std::string> lines;
  testing::internal::CaptureStderr();
  log(LogLevel::kWarning, "dropped");
  set_log_sink([&](LogLevel, std::string_view message) { lines.emplace_back(message); });
  log(LogLevel::kInfo, "{} layers", 3);
  set_log_sink({});
  log(LogLevel::kInfo, "dropped too");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(lines, std::vector<std::string>{"3 layers"});
}

TEST(Log, ASinkMayReplaceItself) {
  int calls = 0;
  set_log_sink([&](LogLevel, std::string_view) {
    ++calls;
    set_log_sink({});
  });
  log(LogLevel::kDebug, "once");
  log(LogLevel::kDebug, "never");
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace halftone
