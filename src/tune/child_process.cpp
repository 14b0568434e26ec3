// Runs a program with limits of time and memory, and collects its output.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "base/errors.h"
#include "tune/trial.h"

namespace halftone {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMaxOutput = size_t{8} << 20;
constexpr size_t kMaxErrors = 4096;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void reset() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

struct Pipe {
  Pipe() : Pipe(made()) {}
  Descriptor reader, writer;

 private:
  struct Ends {
    int ends[2];
  };
  explicit Pipe(const Ends& both) : reader(both.ends[0]), writer(both.ends[1]) {}
  static Ends made() {
    Ends both{};
    if (pipe2(both.ends, O_CLOEXEC) != 0)
      fail(ErrorCode::kIo, "a pipe could not be made: {}", strerror(errno));
    return both;
  }
};

pid_t spawn(const std::vector<std::string>& arguments, int output, int errors) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  SpawnActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), errors, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], actions.get(), nullptr, argv.data(), environ);
  if (error != 0) fail(ErrorCode::kIo, "{} could not be started: {}", arguments[0], strerror(error));
  return child;
}

/// Bytes of the child that no file backs; 0 if /proc does not say it.
int64_t memory_of(pid_t child) {
  std::ifstream status(fmt::format("/proc/{}/status", child));
  int64_t bytes = 0;
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("RssAnon:") && !line.starts_with("RssShmem:")) continue;
    bytes += std::strtoll(line.c_str() + line.find(':') + 1, nullptr, 10) * 1024;
  }
  return bytes;
}

/// Reads what a child writes, and watches its time and memory meanwhile.
class ChildWatch {
 public:
  ChildWatch(pid_t child, Clock::time_point deadline, int64_t memory)
      : child_(child), deadline_(deadline), memory_(memory) {}

  /// Until the child closed both its outputs, or broke a limit.
  void read(int output, int errors, ChildOutcome& outcome) {
    pollfd wanted[2] = {{output, POLLIN, 0}, {errors, POLLIN, 0}};
    while (wanted[0].fd >= 0 || wanted[1].fd >= 0) {
      if (const auto broken = broken_limit()) return end(*broken, outcome);
      if (poll(wanted, 2, patience()) <= 0) continue;
      if (wanted[0].revents != 0 && !read_some(wanted[0].fd, outcome.output)) wanted[0].fd = -1;
      if (outcome.output.size() > kMaxOutput) outcome.output.resize(kMaxOutput);
      if (wanted[1].revents != 0 && !read_some(wanted[1].fd, outcome.errors)) wanted[1].fd = -1;
      if (outcome.errors.size() > 2 * kMaxErrors) outcome.errors.erase(0, outcome.errors.size() - kMaxErrors);
    }
  }

  /// The child's status; one that is still there at a limit is killed.
  int wait(ChildOutcome& outcome) {
    int status = 0;
    while (outcome.end == ChildEnd::kDone) {
      const pid_t ended = waitpid(child_, &status, WNOHANG);
      if (ended == child_) return status;
      if (ended < 0 && errno != EINTR) return 0;
      if (const auto broken = broken_limit()) end(*broken, outcome);
      usleep(2000);
    }
    kill(child_, SIGKILL);
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) continue;
    return status;
  }

 private:
  /// Milliseconds until a limit has to be looked at.
  int patience() const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 1, memory_ > 0 ? 10 : 60'000));
  }
  std::optional<ChildEnd> broken_limit() const {
    if (Clock::now() >= deadline_) return ChildEnd::kTimeout;
    if (memory_ > 0 && memory_of(child_) > memory_) return ChildEnd::kMemory;
    return std::nullopt;
  }
  static void end(ChildEnd how, ChildOutcome& outcome) { outcome.end = how; }
  /// False at the end of the file.
  static bool read_some(int fd, std::string& text) {
    char buffer[4096];
    const ssize_t count = ::read(fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) return true;
    if (count > 0) text.append(buffer, static_cast<size_t>(count));
    return count > 0;
  }

  pid_t child_;
  Clock::time_point deadline_;
  int64_t memory_;
};

}  // namespace

ChildOutcome run_child(const std::vector<std::string>& arguments, double seconds, int64_t memory) {
  Pipe output, errors;
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const pid_t child = spawn(arguments, output.writer.get(), errors.writer.get());
  output.writer.reset();
  errors.writer.reset();
  ChildOutcome outcome;
  ChildWatch watch(child, deadline, memory);
  watch.read(output.reader.get(), errors.reader.get(), outcome);
  const int status = watch.wait(outcome);
  if (outcome.end == ChildEnd::kTimeout) {
    outcome.failure = fmt::format("it took more than {} s", seconds);
  } else if (outcome.end == ChildEnd::kMemory) {
    outcome.failure =
        fmt::format("it wanted more than {:.0f} MB of memory", static_cast<double>(memory) / 1e6);
  } else if (WIFSIGNALED(status)) {
    outcome.end = ChildEnd::kSignal;
    const char* name = sigabbrev_np(WTERMSIG(status));
    outcome.failure = name != nullptr ? fmt::format("it crashed (SIG{})", name)
                                      : fmt::format("it crashed (signal {})", WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    outcome.end = ChildEnd::kExitCode;
    outcome.failure = fmt::format("it ended with exit code {}", WEXITSTATUS(status));
  }
  return outcome;
}

}  // namespace halftone
