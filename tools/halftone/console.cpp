#include "console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "halftone/error.h"
#include "halftone/log.h"
#include "halftone/progress.h"
#include "halftone/table.h"

namespace halftone::cli {

namespace {

constexpr auto kFirstDraw = std::chrono::milliseconds(500);
constexpr auto kRedraw = std::chrono::milliseconds(100);

void write_line(std::FILE* stream, std::string_view prefix, std::string_view message) {
  // One write a line, so that lines of several threads do not mix.
  const std::string line = fmt::format("{}{}\n", prefix, message);
  std::fwrite(line.data(), 1, line.size(), stream);
}

/// Of the terminal that the stream is; 0 where it is none.
int terminal_columns(int stream) {
  winsize size{};
  return ioctl(stream, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// Of a progress bar.
int terminal_width() {
  const int columns = terminal_columns(STDERR_FILENO);
  return columns == 0 ? kColumns : std::min(columns - 1, kColumns);
}

/// COLUMNS says it where it is set, else the terminal; a pipe or a file gets tables whole.
int result_width() {
  constexpr int kLeast = 40, kMost = 10000;
  const char* columns = std::getenv("COLUMNS");
  const int asked = columns != nullptr ? std::atoi(columns) : 0;
  if (asked > 0) return std::clamp(asked, kLeast, kMost);
  const int terminal = terminal_columns(STDOUT_FILENO);
  return terminal > 0 ? std::max(terminal, kLeast) : kWholeTables;
}

}  // namespace

Console::Console(Verbosity verbosity)
    : verbosity_(verbosity), shows_progress_(verbosity != Verbosity::kQuiet && isatty(STDERR_FILENO) == 1) {
  set_page_width(result_width());
  set_log_sink([verbosity](LogLevel level, std::string_view message) {
    if (level == LogLevel::kError) write_line(stderr, "halftone: error: ", message);
    if (level == LogLevel::kWarning) write_line(stderr, "halftone: warning: ", message);
    if (level == LogLevel::kInfo && verbosity != Verbosity::kQuiet) write_line(stderr, "halftone: ", message);
    if (level == LogLevel::kDebug && verbosity == Verbosity::kVerbose)
      write_line(stderr, "halftone: ", message);
  });
}

Console::~Console() {
  set_log_sink({});
}

void Console::result(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void Console::info(std::string_view message) {
  if (verbosity_ != Verbosity::kQuiet) write_line(stderr, "halftone: ", message);
}

void Console::detail(std::string_view message) {
  if (verbosity_ == Verbosity::kVerbose) write_line(stderr, "halftone: ", message);
}

void Console::warn(std::string_view message) {
  write_line(stderr, "halftone: warning: ", message);
}

void Console::error(std::string_view message) {
  write_line(stderr, "halftone: error: ", message);
}

void Console::flush() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw Error(ErrorCode::kIo, fmt::format("standard output: {}", std::generic_category().message(errno)));
}

ProgressBar::ProgressBar(const Console& console, std::string what, int64_t total)
    : what_(std::move(what)),
      total_(total),
      enabled_(console.shows_progress()),
      next_(Clock::now() + kFirstDraw) {}

ProgressBar::~ProgressBar() {
  if (drawn_) fmt::print(stderr, "\r{}\r", std::string(terminal_width(), ' '));
}

void ProgressBar::update(int64_t done, std::string_view what) {
  if (!enabled_ || Clock::now() < next_) return;
  next_ = Clock::now() + kRedraw;
  drawn_ = true;
  // Padded: the line before may have been longer.
  const int width = terminal_width();
  fmt::print(stderr, "\r{:<{}}", render_progress(done, total_, what.empty() ? what_ : what, width), width);
}

}  // namespace halftone::cli
