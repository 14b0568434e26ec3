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

#include "base/errors.h"
#include "tune/trial.h"

namespace halftone {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMostOutput = size_t{1} << 20;

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

pid_t spawn(const std::vector<std::string>& arguments, int output) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  SpawnActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(actions.get(), STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], actions.get(), nullptr, argv.data(), environ);
  if (error != 0) fail(ErrorCode::kIo, "{} could not be started: {}", arguments[0], strerror(error));
  return child;
}

/// False where time ran out before the child closed its output.
bool read_all(int fd, Clock::time_point deadline, std::string& output) {
  char buffer[4096];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd wanted{fd, POLLIN, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) continue;
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    if (output.size() < kMostOutput) output.append(buffer, static_cast<size_t>(count));
  }
}

/// Waits for the child; kills it at the deadline. Gives its status, or nothing where it was killed here.
std::optional<int> wait_for(pid_t child, Clock::time_point deadline) {
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return 0;
    if (Clock::now() >= deadline) break;
    usleep(2000);
  }
  kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return std::nullopt;
}

}  // namespace

ChildOutcome run_child(const std::vector<std::string>& arguments, double seconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(ErrorCode::kIo, "a pipe could not be made: {}", strerror(errno));
  Descriptor reader(ends[0]), writer(ends[1]);
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const pid_t child = spawn(arguments, writer.get());
  writer.reset();
  ChildOutcome outcome;
  const bool closed = read_all(reader.get(), deadline, outcome.output);
  const auto status = wait_for(child, closed ? deadline : Clock::now());
  if (!status) {
    outcome.failure = fmt::format("it took more than {} s", seconds);
  } else if (WIFSIGNALED(*status)) {
    const char* name = sigabbrev_np(WTERMSIG(*status));
    outcome.failure = name != nullptr ? fmt::format("it crashed (SIG{})", name)
                                      : fmt::format("it crashed (signal {})", WTERMSIG(*status));
  } else if (WEXITSTATUS(*status) != 0) {
    outcome.failure = fmt::format("it ended with exit code {}", WEXITSTATUS(*status));
  }
  return outcome;
}

}  // namespace halftone
