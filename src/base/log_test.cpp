#include "base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace halftone {
namespace {

TEST(Log, WarningsAndErrorsGoToStderrUntilThereIsASink) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  set_log_sink(default_log_sink());
  log(LogLevel::kDebug, "dropped");
  log(LogLevel::kInfo, "dropped");
  log(LogLevel::kWarning, "two\nlines of {}", "text");
  log(LogLevel::kError, "disk full");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "halftone: warning: two lines of text\nhalftone: error: disk full\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(Log, AnEmptySinkIsSilent) {
  testing::internal::CaptureStderr();
  set_log_sink({});
  log(LogLevel::kError, "dropped");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Log, GoesToTheSinkAndNowhereElse) {
  std::vector<std::string> lines;
  testing::internal::CaptureStderr();
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
