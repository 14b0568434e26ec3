#include "common/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include "halftone/base/error.h"
#include "halftone/base/log.h"
#include "halftone/cli/progress.h"
#include "halftone/cli/table.h"

namespace halftone::cli {

namespace {

constexpr auto kFirstDraw = std::chrono::milliseconds(500);
constexpr auto kRedraw = std::chrono::milliseconds(100);

std::atomic<bool> bar_is_drawn{false};

std::string blank_line();

/// What a terminal of another encoding shows as garbage. One letter each where tables have them, so that their
/// columns stay in line; what would then mean something else gets two.
std::string in_ascii(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kLetters[] = {
      {"…", "~"},  {"×", "x"}, {"≥", ">="}, {"≤", "<="}, {"±", "+-"},
      {"→", "->"}, {"–", "-"}, {"·", "*"},  {"µ", "u"},  {"ᵀ", "T"}};
  for (const auto& [letter, plain] : kLetters) {
    for (size_t at = text.find(letter); at != std::string::npos; at = text.find(letter, at))
      text.replace(at, letter.size(), plain);
  }
  return text;
}

/// Files and pipes get UTF-8 whatever the locale: programs read them.
bool shows_utf8(int stream) {
  if (isatty(stream) != 1) return true;
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    const std::string locale(value);
    return locale.find("UTF") != std::string::npos || locale.find("utf") != std::string::npos;
  }
  return false;
}

void write_line(std::FILE* stream, std::string_view prefix, std::string_view message) {
  // One write a line, so that lines of several threads do not mix; over a progress bar, which comes again.
  std::string line =
      fmt::format("{}{}{}\n", bar_is_drawn.exchange(false) ? blank_line() : "", prefix, message);
  if (!shows_utf8(fileno(stream))) line = in_ascii(std::move(line));
  std::fwrite(line.data(), 1, line.size(), stream);
}

/// Of the terminal that the stream is; 0 if it is none.
int terminal_columns(int stream) {
  winsize size{};
  return ioctl(stream, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// Of a progress bar.
int terminal_width() {
  const int columns = terminal_columns(STDERR_FILENO);
  return columns == 0 ? kColumns : std::min(columns - 1, kColumns);
}

std::string blank_line() {
  return fmt::format("\r{}\r", std::string(static_cast<size_t>(terminal_width()), ' '));
}

/// COLUMNS says it where it is set, else the terminal; a pipe or a file gets tables whole.
int result_width() {
  constexpr int kLeast = 40, kMax = 10000;
  const char* columns = std::getenv("COLUMNS");
  const int asked = columns != nullptr ? std::atoi(columns) : 0;
  if (asked > 0) return std::clamp(asked, kLeast, kMax);
  const int terminal = terminal_columns(STDOUT_FILENO);
  return terminal > 0 ? std::max(terminal, kLeast) : kWholeTables;
}

/// A warning that comes again, once for each candidate of a tuning, is said once.
class SaidOnce {
 public:
  bool is_new(std::string_view message) {
    const std::lock_guard lock(mutex_);
    return said_.size() >= kMax || said_.emplace(message).second;
  }

 private:
  static constexpr size_t kMax = 1000;
  std::mutex mutex_;
  std::set<std::string> said_;
};

}  // namespace

Console::Console(Verbosity verbosity)
    : verbosity_(verbosity), shows_progress_(verbosity != Verbosity::kQuiet && isatty(STDERR_FILENO) == 1) {
  set_page_width(result_width());
  set_log_sink([verbosity, said = std::make_shared<SaidOnce>()](LogLevel level, std::string_view message) {
    if (level == LogLevel::kWarning && !said->is_new(message)) return;
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
  if (!shows_utf8(STDOUT_FILENO)) {
    const std::string plain = in_ascii(std::string(text));
    std::fwrite(plain.data(), 1, plain.size(), stdout);
    return;
  }
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
  if (bar_is_drawn.exchange(false)) fmt::print(stderr, "{}", blank_line());
}

void ProgressBar::update(int64_t done, std::string_view what) {
  if (!enabled_ || Clock::now() < next_) return;
  next_ = Clock::now() + kRedraw;
  bar_is_drawn = true;
  // Padded: the line before may have been longer.
  const int width = terminal_width();
  fmt::print(stderr, "\r{:<{}}", render_progress(done, total_, what.empty() ? what_ : what, width), width);
}

}  // namespace halftone::cli
