#include "common/child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>

namespace halftone::bench {

std::string output_of_child(const std::vector<std::string>& arguments) {
  std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<char*> argv{self.data()};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(self.c_str(), argv.data());
    _exit(127);
  }
  close(ends[1]);
  std::string output;
  {
    const std::unique_ptr<std::FILE, decltype(&std::fclose)> pipe(fdopen(ends[0], "r"), &std::fclose);
    std::array<char, 4096> buffer;
    while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe.get()))
      output.append(buffer.data(), count);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("the child process failed");
  return output;
}

}  // namespace halftone::bench
