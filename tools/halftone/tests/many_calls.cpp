// For tests: many calls of the program for the price of one start. halftone_many is linked from the program's
// own objects; with arguments it is the program. Without, each line of stdin is a number and a call's
// arguments, separated by the byte 0x1f. Each call is a process of its own, forked before main() has done
// anything; what it prints goes to NUMBER.out and NUMBER.err in the working folder, and a line "NUMBER STATUS
// SECONDS" to stdout (as wait() gives the status) when it has ended. An empty line waits for all calls so far.
// NUMBER may be a path. many_calls.py is the other side.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

extern "C" int __real_main(int argc, char** argv);

namespace {

using Clock = std::chrono::steady_clock;
constexpr char kSeparator = '\x1f';
constexpr unsigned kLongest = 120;  // seconds, as the tests' other calls of the program

struct Call {
  std::string number;
  Clock::time_point began;
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> words(1);
  for (const char c : line) {
    if (c == kSeparator) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

void print_to(const std::string& path, int descriptor) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || dup2(file, descriptor) < 0) std::_Exit(126);
  close(file);
}

[[noreturn]] void call(std::vector<std::string> words) {
  alarm(kLongest);
  close(STDIN_FILENO);
  open("/dev/null", O_RDONLY);
  print_to(words[0] + ".out", STDOUT_FILENO);
  print_to(words[0] + ".err", STDERR_FILENO);
  words[0] = "halftone";
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::exit(__real_main(static_cast<int>(words.size()), arguments.data()));
}

void wait_for_one(std::map<pid_t, Call>& running) {
  int status = 0;
  const pid_t ended = wait(&status);
  const auto found = running.find(ended);
  if (found == running.end()) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - found->second.began).count();
  std::printf("%s %d %.3f\n", found->second.number.c_str(), status, seconds);
  running.erase(found);
}

}  // namespace

extern "C" int __wrap_main(int argc, char** argv) {
  if (argc > 1) return __real_main(argc, argv);
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  std::map<pid_t, Call> running;
  for (std::string line; std::getline(std::cin, line);) {
    const size_t may_run = line.empty() ? 0 : static_cast<size_t>(cores) - 1;
    while (running.size() > may_run) wait_for_one(running);
    std::fflush(stdout);  // or the child would print it again
    if (line.empty()) continue;
    const std::vector<std::string> words = split(line);
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) call(words);
    running[child] = {words[0], Clock::now()};
  }
  while (!running.empty()) wait_for_one(running);
  return 0;
}
