// The child process of the tests: what `halftone bench-child` is to `halftone bench`, and worse ones.
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "halftone/bench/bench.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string what = argv[1];
  std::puts("a library's chatter");
  std::fputs("a library's complaint\n", stderr);
  std::fflush(stdout);
  if (what == "run") std::puts(halftone::run_bench_child(argv[2]).c_str());
  if (what == "crash") std::raise(SIGSEGV);
  if (what == "exit") return 7;
  if (what == "junk") std::puts("{\"rows\": 3}");
  if (what == "hang") std::this_thread::sleep_for(std::chrono::seconds(100));
  if (what == "eat") {
    std::vector<std::vector<char>> eaten;
    for (int i = 0; i < 400; ++i) {
      eaten.emplace_back(size_t{10} << 20, static_cast<char>(i));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  return 0;
}
