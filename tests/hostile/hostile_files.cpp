// Sound containers with wrong content: hostile_files --trials N makes N files, each by a few changes to a
// valid one, sealed with right checksums, and tries each in a child process. No crash, no invalid access, no
// hang; the compiled model answers as the interpreter does, or with a halftone::Error.
//
//   hostile_files --pt2 FOLDER [--first SEED] [--trials N] [--keep FOLDER] [--replay FOLDER] [--seconds S]
//
// --keep writes every file that failed; put those into tests/hostile/regressions, which --replay tries again.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <regex>

#include "capture/test_archive.h"
#include "checkpoint/ht_writer.h"
#include "compiler/executor/guarded_memory.h"
#include "graph/dtypes.h"
#include "halftone/error.h"
#include "halftone/limits.h"
#include "mutate.h"
#include "trial.h"

namespace halftone::hostile {
namespace {

namespace fs = std::filesystem;
using Outcome = TrialResult::Outcome;

struct Settings {
  std::string pt2;
  std::string keep;
  std::string replay;
  uint64_t first = 1;
  uint64_t trials = 20000;
  double seconds = 0;  ///< 0: no limit
};

constexpr unsigned kSecondsOfOne = 20;
constexpr rlim_t kMemory = rlim_t{12} << 30;
constexpr uint64_t kBatch = 250;  ///< of one child

void write_parts(const HtParts& parts, const std::string& path) {
  std::vector<SafetensorsTensor> stored;
  std::vector<at::Tensor> kept;
  for (const auto& [name, tensor] : parts.tensors) {
    kept.push_back(tensor.contiguous());
    const at::Tensor& bytes = kept.back();
    stored.push_back({name,
                      *try_dtype_of(bytes.scalar_type()),
                      bytes.sizes().vec(),
                      {static_cast<const std::byte*>(bytes.data_ptr()), bytes.nbytes()}});
  }
  write_ht(path, stored, parts.metadata);
}

void write_parts(const Pt2Parts& parts, const std::string& path) {
  test::ContainerWriter writer;
  for (const auto& [name, bytes] : parts.members) writer.add(name, bytes);
  test::write_file(path, writer.finish());
}

/// The file of a seed, in `folder`.
std::string make_file(uint64_t seed, const Seeds& seeds, const fs::path& folder) {
  Dice dice(seed);
  if (!seeds.pt2.empty() && dice.chance(15)) {
    Pt2Parts parts = dice.one_of(seeds.pt2);
    mutate_pt2(parts, dice, seeds.targets);
    const std::string path = folder / fmt::format("{}.pt2", seed);
    write_parts(parts, path);
    return path;
  }
  HtParts parts = dice.one_of(seeds.ht);
  mutate_ht(parts, dice, seeds.targets);
  const std::string path = folder / fmt::format("{}.ht", seed);
  try {
    write_parts(parts, path);
  } catch (const Error&) {
    // A name or text that no container holds: the unchanged file serves.
    write_parts(dice.one_of(seeds.ht), path);
  }
  return path;
}

/// What differs between two messages of one kind: numbers and names.
std::string kind_of(const std::string& message) {
  static const std::regex names(
      "\"[^\"]*\"|%[A-Za-z0-9_.]+|-?[0-9]+|\\[[^\\]]*\\]|[a-z_0-9]+::[A-Za-z0-9_.]+");
  return std::regex_replace(message.substr(0, 400), names, "_").substr(0, 160);
}

struct Tally {
  std::map<Outcome, uint64_t> outcomes;
  std::set<std::string> refusals, steps, layouts;
  std::vector<std::pair<std::string, std::string>> failures;  ///< file or seed, and why
  uint64_t trials = 0;
};

/// Shared with the child: what it is doing now, and the line protocol of what it found.
class Child {
 public:
  Child()
      : current_(static_cast<uint64_t*>(
            mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Child() { munmap(current_, sizeof(uint64_t)); }

  /// Tries items `begin` to `end` in a child process; gives the first that is left, `end` if none is.
  uint64_t run(uint64_t begin, uint64_t end, const std::function<std::string(uint64_t)>& file_of,
               Tally& tally) {
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) throw Error(ErrorCode::kIo, "pipe failed");
    *current_ = begin;
    const pid_t pid = fork();
    if (pid == 0) {
      close(pipe_ends[0]);
      work(begin, end, file_of, pipe_ends[1]);
    }
    close(pipe_ends[1]);
    read_lines(pipe_ends[0], tally);
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return end;
    const std::string why = WIFSIGNALED(status) ? (WTERMSIG(status) == SIGALRM
                                                       ? fmt::format("did not end in {} s", kSecondsOfOne)
                                                       : fmt::format("ended by signal {}", WTERMSIG(status)))
                                                : fmt::format("exit code {}", WEXITSTATUS(status));
    tally.failures.emplace_back(std::to_string(*current_), why);
    ++tally.trials;
    return *current_ + 1;
  }

 private:
  [[noreturn]] void work(uint64_t begin, uint64_t end, const std::function<std::string(uint64_t)>& file_of,
                         int out) {
    const rlimit memory{kMemory, kMemory};
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CORE, &no_core);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(1);  // torch's last words before an abort
    compiler::set_guarded_plan_memory(true);
    set_max_steps(2000);  // each takes a mapping or two here
    FILE* lines = fdopen(out, "w");
    for (uint64_t item = begin; item < end; ++item) {
      *current_ = item;
      const std::string path = file_of(item);
      alarm(kSecondsOfOne);
      const TrialResult result = try_file(path);
      alarm(0);
      fmt::print(lines, "{}\t{}\t{}\n", static_cast<int>(result.outcome), item, one_line(result.detail));
      for (const std::string& step : result.steps) fmt::print(lines, "s\t{}\n", step);
      for (const std::string& layout : result.layouts) fmt::print(lines, "l\t{}\n", one_line(layout));
      std::fflush(lines);
      if (path.find("/halftone_hostile_") != std::string::npos) fs::remove(path);
    }
    _exit(0);
  }

  static std::string one_line(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
    return text.substr(0, 600);
  }

  static void read_lines(int in, Tally& tally) {
    FILE* lines = fdopen(in, "r");
    char* line = nullptr;
    size_t room = 0;
    ssize_t length = 0;
    while ((length = getline(&line, &room, lines)) > 0)
      read_line(std::string(line, static_cast<size_t>(length - 1)), tally);
    std::free(line);
    std::fclose(lines);
  }

  static void read_line(const std::string& line, Tally& tally) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) return;
    const std::string head = line.substr(0, tab), rest = line.substr(tab + 1);
    if (head == "s") {
      tally.steps.insert(rest);
    } else if (head == "l") {
      tally.layouts.insert(rest);
    } else {
      const auto outcome = static_cast<Outcome>(std::stoi(head));
      const size_t second = rest.find('\t');
      const std::string detail = rest.substr(second + 1);
      ++tally.trials;
      ++tally.outcomes[outcome];
      if (outcome == Outcome::kWrong) tally.failures.emplace_back(rest.substr(0, second), detail);
      if (outcome == Outcome::kRefused || outcome == Outcome::kErrors || outcome == Outcome::kCautious)
        tally.refusals.insert(kind_of(detail));
    }
  }

  uint64_t* current_;
};

void report(const Tally& tally, double seconds) {
  const auto count = [&](Outcome outcome) {
    const auto found = tally.outcomes.find(outcome);
    return found == tally.outcomes.end() ? 0 : found->second;
  };
  fmt::print(
      "{} files in {:.0f} s: {} refused at load, {} with errors in both, {} with an error in the compiled "
      "model only, {} answered alike\n",
      tally.trials, seconds, count(Outcome::kRefused), count(Outcome::kErrors), count(Outcome::kCautious),
      count(Outcome::kSame));
  fmt::print("{} kinds of messages, {} kinds of plan steps, {} packed layouts\n", tally.refusals.size(),
             tally.steps.size(), tally.layouts.size());
  for (const auto& [what, why] : tally.failures) fmt::print("FAILED {}: {}\n", what, why);
  fmt::print("{} passed, {} failed\n", tally.trials - tally.failures.size(), tally.failures.size());
}

Tally fuzz(const Settings& settings) {
  const Seeds seeds = make_seeds(settings.pt2);
  fmt::print("{} .ht seeds, {} .pt2 seeds, {} operators in them\n", seeds.ht.size(), seeds.pt2.size(),
             seeds.targets.size());
  std::fflush(stdout);  // or every child would print it again
  const fs::path shared_memory = "/dev/shm";
  std::string pattern =
      (fs::exists(shared_memory) ? shared_memory : fs::temp_directory_path()) / "halftone_hostile_XXXXXX";
  const fs::path folder = mkdtemp(pattern.data());
  const auto began = std::chrono::steady_clock::now();
  Tally tally;
  Child child;
  const uint64_t end = settings.first + settings.trials;
  for (uint64_t next = settings.first; next < end;) {
    next = child.run(
        next, std::min(end, next + kBatch), [&](uint64_t seed) { return make_file(seed, seeds, folder); },
        tally);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began;
    if (settings.seconds > 0 && elapsed.count() > settings.seconds) break;
  }
  if (!settings.keep.empty()) {
    fs::create_directories(settings.keep);
    for (const auto& [seed, why] : tally.failures) make_file(std::stoull(seed), seeds, settings.keep);
  }
  fs::remove_all(folder);
  return tally;
}

Tally replay(const Settings& settings) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(settings.replay)) {
    if (entry.path().extension() == ".ht" || entry.path().extension() == ".pt2")
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) throw Error(ErrorCode::kNotFound, settings.replay + ": no file to try");
  Tally tally;
  Child child;
  for (uint64_t next = 0; next < files.size();)
    next = child.run(
        next, files.size(), [&](uint64_t i) { return files[i]; }, tally);
  for (auto& [what, why] : tally.failures) what = files[std::stoull(what)];
  return tally;
}

int main_of(int argc, char** argv) {
  Settings settings;
  CLI::App app("tries sound containers with wrong content");
  app.add_option("--pt2", settings.pt2, "a folder with .pt2 files to start from")
      ->check(CLI::ExistingDirectory);
  app.add_option("--first", settings.first, "the first seed");
  app.add_option("--trials", settings.trials, "how many files");
  app.add_option("--seconds", settings.seconds, "stop after so long");
  app.add_option("--keep", settings.keep, "write the files that failed into this folder");
  app.add_option("--replay", settings.replay, "try the files in this folder instead")
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);  // threads do not survive a fork
  const auto began = std::chrono::steady_clock::now();
  const Tally tally = settings.replay.empty() ? fuzz(settings) : replay(settings);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began;
  report(tally, elapsed.count());
  return tally.failures.empty() && tally.trials > 0 ? 0 : 1;
}

}  // namespace
}  // namespace halftone::hostile

int main(int argc, char** argv) {
  try {
    return halftone::hostile::main_of(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "hostile_files: {}\n", error.what());
    return 1;
  }
}
