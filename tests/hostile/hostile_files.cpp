// Sound containers with wrong content: hostile_files --trials N makes N files, each by a few changes to a
// valid one, sealed with right checksums, and tries each in a child process. No crash, no invalid access, no
// hang; the compiled model answers as the interpreter does, or with a halftone::Error.
//
//   hostile_files --pt2 FOLDER [--first SEED] [--trials N] [--jobs N] [--seconds S] [--keep FOLDER]
//                 [--tally FILE [--resume]] [--plant KIND]
//   hostile_files --replay FOLDER
//   hostile_files --sum TALLY...
//
// --keep writes every file that failed, as soon as it has; put those into tests/hostile/regressions, which
// --replay tries again. --tally writes every 10,000 files what was counted and reached (kinds of messages,
// plan steps, packed layouts); --resume goes on where the tally ends, on the same build; --sum adds up the
// tallies of slices. --plant does something wrong itself at the third file, which has to be found: abort,
// buffer; under sanitizers heap and undefined too.
#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Lazy.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include "capture/test_archive.h"
#include "checkpoint/container/ht_writer.h"
#include "children.h"
#include "graph/aten/dtypes.h"
#include "halftone/base/error.h"
#include "mutate.h"

namespace halftone::hostile {
namespace {

namespace fs = std::filesystem;
using Outcome = TrialResult::Outcome;

struct Settings {
  std::string pt2;
  std::string keep;
  std::string replay;
  std::string tally;
  std::vector<std::string> sum;
  std::string plant;
  uint64_t first = 1;
  uint64_t trials = 20000;
  size_t jobs = 1;
  double seconds = 0;  ///< 0: no limit
  bool resume = false;
};

constexpr uint64_t kProgress = 10000;  ///< files between two reports of how far it is

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

/// A folder that is gone with its owner.
class Folder {
 public:
  Folder() {
    const fs::path shared_memory = "/dev/shm";
    std::string pattern =
        (fs::exists(shared_memory) ? shared_memory : fs::temp_directory_path()) / "halftone_hostile_XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw Error(ErrorCode::kIo, pattern + ": cannot be made");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

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

void report(const Tally& tally) {
  const auto count = [&](Outcome outcome) {
    const auto found = tally.outcomes.find(outcome);
    return found == tally.outcomes.end() ? 0 : found->second;
  };
  fmt::print(
      "{} files in {:.0f} s: {} refused at load, {} with errors in both, {} with an error in the compiled "
      "model only, {} answered alike, {} differ for a reason that is no defect",
      tally.trials, tally.seconds, count(Outcome::kRefused), count(Outcome::kErrors),
      count(Outcome::kCautious), count(Outcome::kSame), count(Outcome::kForgiven));
  std::string reasons;
  for (const auto& [reason, files] : tally.forgiven)
    reasons += fmt::format("{}{} {}", reasons.empty() ? " (" : ", ", files, reason);
  fmt::print("{}{}\n", reasons, reasons.empty() ? "" : ")");
  fmt::print("{} kinds of messages, {} kinds of plan steps, {} packed layouts\n", tally.refusals.size(),
             tally.steps.size(), tally.layouts.size());
  fmt::print("{} passed, {} failed\n", tally.trials - tally.failures.size(), tally.failures.size());
  std::fflush(stdout);  // or every child would print it again
}

void do_wrong(const std::string& kind) {
  const volatile int one = 1;
  if (kind == "abort") std::abort();
  if (kind == "buffer") at::zeros({16}, at::kByte).data_ptr<uint8_t>()[15 + one] = 1;
  if (kind == "heap") std::make_unique<uint8_t[]>(16)[static_cast<size_t>(15 + one)] = 1;
  if (kind == "undefined") fmt::print(stderr, "{}\n", std::numeric_limits<int>::max() + one);
}

/// What the run before this one has left, or nothing.
Tally begin_tally(const Settings& settings) {
  Tally tally;
  tally.first = tally.next = settings.first;
  if (!settings.resume || !fs::exists(settings.tally)) return tally;
  tally = read_tally(settings.tally);
  const uint64_t end = settings.first + settings.trials;
  if (tally.first != settings.first || tally.next > end)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: of the seeds {} to {}, not {} to {}: give the same --first and --trials",
                            settings.tally, tally.first, tally.next, settings.first, end));
  fmt::print("goes on at seed {}\n", tally.next);
  return tally;
}

Tally fuzz(const Settings& settings) {
  Tally tally = begin_tally(settings);
  const Seeds seeds = make_seeds(settings.pt2);
  fmt::print("{} .ht seeds, {} .pt2 seeds, {} operators in them\n", seeds.ht.size(), seeds.pt2.size(),
             seeds.targets.size());
  std::fflush(stdout);
  const Folder folder;
  const Stopwatch watch;
  const double seconds_before = tally.seconds;
  std::string file;  // of each child its own
  uint64_t shown = tally.trials / kProgress;
  ChildrenOptions children{.jobs = settings.jobs, .folder = folder.path()};
  children.file_of = [&](uint64_t seed) {
    if (seed == settings.first + 2) do_wrong(settings.plant);
    return file = make_file(seed, seeds, folder.path());
  };
  children.done_with = [&](uint64_t) { fs::remove(file); };
  children.failed = [&](uint64_t seed, const std::string& why) {
    fmt::print("FAILED seed {}: {}\n", seed, why);
    if (!settings.keep.empty()) {
      fs::create_directories(settings.keep);
      fmt::print("  kept as {}\n", make_file(seed, seeds, settings.keep));
    }
    std::fflush(stdout);
  };
  const auto save = [&] {
    tally.seconds = seconds_before + watch.seconds();
    if (!settings.tally.empty()) write_tally(tally, settings.tally);
  };
  children.go_on = [&](const Tally&) {
    if (tally.trials / kProgress > shown) {
      shown = tally.trials / kProgress;
      save();
      report(tally);
    }
    return settings.seconds == 0 || watch.seconds() < settings.seconds;
  };
  try_in_children(tally, settings.first + settings.trials, children);
  save();
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
  const Folder folder;
  const ChildrenOptions children{.jobs = settings.jobs,
                                 .folder = folder.path(),
                                 .file_of = [&](uint64_t item) { return files[item]; },
                                 .done_with = [](uint64_t) {},
                                 .failed =
                                     [&](uint64_t item, const std::string& why) {
                                       fmt::print("FAILED {}: {}\n", files[item], why);
                                       std::fflush(stdout);
                                     }};
  const Stopwatch watch;
  Tally tally;
  try_in_children(tally, files.size(), children);
  tally.seconds = watch.seconds();
  return tally;
}

Tally sum(const std::vector<std::string>& files) {
  Tally tally;
  for (const std::string& file : files) tally.merge(read_tally(file));
  return tally;
}

int main_of(int argc, char** argv) {
  Settings settings;
  CLI::App app("tries sound containers with wrong content");
  app.add_option("--pt2", settings.pt2, "a folder with .pt2 files to start from")
      ->check(CLI::ExistingDirectory);
  app.add_option("--first", settings.first, "the first seed");
  app.add_option("--trials", settings.trials, "how many files");
  app.add_option("--jobs", settings.jobs, "child processes at a time")->check(CLI::Range(1, 64));
  app.add_option("--seconds", settings.seconds, "stop after so long");
  app.add_option("--keep", settings.keep, "write the files that failed into this folder");
  auto* tally_file =
      app.add_option("--tally", settings.tally, "write what was counted and reached to this file");
  app.add_flag("--resume", settings.resume, "go on where the tally ends")->needs(tally_file);
  app.add_option("--sum", settings.sum, "add up these tallies instead")->check(CLI::ExistingFile);
  app.add_option("--plant", settings.plant, "do something wrong, to be found")
      ->check(CLI::IsMember({"abort", "buffer", "heap", "undefined"}));
  app.add_option("--replay", settings.replay, "try the files in this folder instead")
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);  // threads do not survive a fork
  // Errors of torch keep the whole call stack otherwise, which costs more than most trials. Not nullptr: torch reads it without asking.
  c10::SetStackTraceFetcher([] { return std::make_shared<c10::PrecomputedLazyValue<std::string>>(""); });
  const Tally tally = !settings.sum.empty()     ? sum(settings.sum)
                      : settings.replay.empty() ? fuzz(settings)
                                                : replay(settings);
  report(tally);
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
