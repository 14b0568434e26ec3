// The two streams of the program: results on stdout, messages and progress bars on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace halftone::cli {

enum class Verbosity { kQuiet, kNormal, kVerbose };

/// Columns that paragraphs are made to fit; tables too, but for set_page_width().
inline constexpr int kColumns = 100;

/// Not thread-safe, except that the library's log messages may come from any thread.
class Console {
 public:
  /// Takes the library's log while it lives: warnings always, information unless quiet, the rest when
  /// verbose.
  explicit Console(Verbosity verbosity);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// Text for stdout, as it is.
  void result(std::string_view text);
  /// A line for stderr, unless quiet.
  void info(std::string_view message);
  /// A line for stderr, when verbose.
  void detail(std::string_view message);
  void warn(std::string_view message);
  /// "halftone: error: …"; also without a Console, for what fails before there is one.
  static void error(std::string_view message);

  /// Whether progress bars may be drawn.
  bool shows_progress() const { return shows_progress_; }
  /// Throws kIo if stdout did not take everything (a full disk).
  void flush();

 private:
  Verbosity verbosity_;
  bool shows_progress_;
};

/// A bar on stderr for work that turns out to be long; draws nothing if stderr is not a terminal, and nothing
/// for work that ends within half a second. Erases itself.
class ProgressBar {
 public:
  ProgressBar(const Console& console, std::string what, int64_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// `what` is shown behind the bar; without it, what the bar was made with.
  void update(int64_t done, std::string_view what = {});

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  int64_t total_;
  bool enabled_;
  Clock::time_point next_;
};

}  // namespace halftone::cli
