// Appending to a file that others append to, that a crash has cut off, or that is not ours.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <set>
#include <thread>

#include "archive/bytes/text_file.h"
#include "bench/results/rows_csv.h"
#include "bench/results/test_rows.h"

namespace halftone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> append(const std::string& path, const BenchRow& row) {
  return append_bench_csv(path, {&row, 1});
}

TEST(AppendCsv, MakesTheFileAndAddsToIt) {
  const ScratchFolder folder;
  const std::string path = folder.file("r.csv");
  EXPECT_TRUE(append(path, full_row("a")).empty());
  EXPECT_TRUE(append(path, full_row("b")).empty());
  EXPECT_THAT(read_bench_csv(path).rows, ElementsAre(full_row("a"), full_row("b")));
  const std::vector<BenchRow> both = {full_row("a"), full_row("b")};
  EXPECT_EQ(read_text_file(path), to_csv(both));
}

/// A crash may cut the last line anywhere. Whatever is left, the next append must give a sound file that has
/// lost that line at most, and says so.
void expect_mended(const std::string& path, const std::vector<BenchRow>& rows, size_t size) {
  const std::string whole = to_csv(rows);
  const size_t keep = to_csv({rows.data(), 1}).size();
  std::ofstream(path, std::ios::binary) << whole.substr(0, size);
  const BenchCsv read = read_bench_csv(path);
  const std::vector<std::string> notes = append(path, full_row("next"));
  // Without its line end, a line is beyond doubt only if its error is empty.
  const bool survives = size == whole.size() || (size + 1 == whole.size() && rows[1].error.empty());
  const bool cut = size > keep && !survives;
  EXPECT_EQ(notes.size(), cut ? 1U : 0U);
  EXPECT_EQ(read.notes.size(), cut ? 1U : 0U);
  std::vector<BenchRow> wanted = {rows[0]};
  if (survives) wanted.push_back(rows[1]);
  EXPECT_EQ(read.rows, wanted);
  wanted.push_back(full_row("next"));
  const BenchCsv back = read_bench_csv(path);
  EXPECT_EQ(back.rows, wanted);
  EXPECT_TRUE(back.notes.empty());
}

TEST(AppendCsv, MendsEveryCut) {
  const ScratchFolder folder;
  for (const std::string error : {"boom, \"said\"\nthe \"\"kernel\"", "\"\"", "\"said\"", "plain", ""}) {
    BenchRow last = full_row("last \"quoted\",\nwith lines");
    last.error = error;
    const std::vector<BenchRow> rows = {full_row("first"), last};
    // What stands before the last cell is the same each time.
    const size_t end = to_csv(rows).size();
    const bool all = error.starts_with("boom");
    for (size_t size = all ? to_csv({rows.data(), 1}).size() : end - error.size() * 2 - 4; size <= end;
         ++size) {
      SCOPED_TRACE(error + ": " + std::to_string(size));
      expect_mended(folder.file("r.csv"), rows, size);
    }
  }
}

TEST(AppendCsv, MendsACutHeader) {
  const ScratchFolder folder;
  const std::string path = folder.file("r.csv");
  const std::string header = csv_header();
  for (size_t size = 0; size <= header.size(); ++size) {
    SCOPED_TRACE(size);
    std::ofstream(path, std::ios::binary) << header.substr(0, size);
    EXPECT_EQ(append(path, full_row()).size(), size > 0 && size < header.size() ? 1U : 0U);
    EXPECT_THAT(read_bench_csv(path).rows, ElementsAre(full_row()));
  }
}

TEST(AppendCsv, LeavesForeignFilesAlone) {
  const ScratchFolder folder;
  const std::string path = folder.file("r.csv");
  for (const std::string text : {"name,speedup\na,1\n", "hello", "dev,name,batch_size\n", "\"broken\"x\n"}) {
    write_text_file(path, text);
    EXPECT_NE(error_of([&] { append(path, full_row()); }), "no error");
    EXPECT_EQ(read_text_file(path), text);
  }
  write_text_file(path, "dev,model\n");
  EXPECT_THAT(error_of([&] { append(path, full_row()); }),
              HasSubstr("column 2 of its header is \"model\", not \"name\""));
  EXPECT_THAT(error_of([&] { append(folder.file("no/such/folder.csv"), full_row()); }),
              HasSubstr("cannot be opened"));
  EXPECT_THAT(error_of([&] { append("/dev/null", full_row()); }), HasSubstr("not a regular file"));
}

TEST(AppendCsv, RefusesBadRowsBeforeItTouchesTheFile) {
  const ScratchFolder folder;
  const std::vector<BenchRow> rows = {full_row(), BenchRow()};
  EXPECT_THAT(error_of([&] { append_bench_csv(folder.file("r.csv"), rows); }), HasSubstr("name: is empty"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("r.csv")));
}

/// Runs `body` in a child process and returns its exit status.
template <typename Body>
pid_t in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      ::_exit(body());
    } catch (...) {
      ::_exit(99);
    }
  }
  return child;
}

int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(AppendCsv, ProcessesTakeTurns) {
  constexpr int kProcesses = 8;
  constexpr int kRows = 25;
  const ScratchFolder folder;
  const std::string path = folder.file("r.csv");
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(in_child([&] {
      for (int i = 0; i < kRows; ++i) {
        BenchRow row = full_row(std::to_string(process) + ":" + std::to_string(i));
        // Longer than what a pipe or a page would keep together, with line ends inside.
        row.error.assign(static_cast<size_t>(i) * 700, '\n');
        if (!append(path, row).empty()) return 1;
      }
      return 0;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(status_of(child), 0);
  const BenchCsv back = read_bench_csv(path);
  std::set<std::string> names;
  for (const BenchRow& row : back.rows) names.insert(row.name);
  EXPECT_EQ(back.rows.size(), static_cast<size_t>(kProcesses * kRows));
  EXPECT_EQ(names.size(), back.rows.size());
  EXPECT_TRUE(back.notes.empty());
}

/// Appenders that are killed at any moment, with SIGKILL: afterwards every line is whole, and what they
/// reported as written is there.
TEST(AppendCsv, SurvivesKilledProcesses) {
  const ScratchFolder folder;
  const std::string path = folder.file("r.csv");
  const std::string done = folder.file("done.txt");
  for (int round = 0; round < 12; ++round) {
    const pid_t child = in_child([&] {
      const int report = ::open(done.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
      for (int i = 0;; ++i) {
        const std::string name = std::to_string(round) + ":" + std::to_string(i) + "\n";
        append(path, full_row(name));
        if (::write(report, name.data(), name.size()) < 0) return 1;
      }
    });
    ::usleep(8000 + 1700 * round);
    ::kill(child, SIGKILL);
    EXPECT_EQ(status_of(child), -SIGKILL);
  }
  append(path, full_row("end"));
  std::set<std::string> names;
  for (const BenchRow& row : read_bench_csv(path).rows) names.insert(row.name);
  EXPECT_TRUE(names.contains("end"));
  const std::string reported = std::filesystem::exists(done) ? read_text_file(done) : "";
  size_t lines = 0;
  for (size_t at = 0; at < reported.size(); ++lines) {
    const size_t end = reported.find('\n', at) + 1;
    EXPECT_TRUE(names.contains(reported.substr(at, end - at))) << reported.substr(at, end - at);
    at = end;
  }
  EXPECT_GT(lines, 0U);
}

TEST(AppendCsv, TakesAHalfWriteBack) {
  const ScratchFolder folder;
  const std::string path = folder.file("r.csv");
  append(path, full_row("kept"));
  const std::string before = read_text_file(path);
  const int status = status_of(in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {before.size() + 20, before.size() + 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return error_of([&] { append(path, full_row("too much")); }).find("cannot be written") ==
                   std::string::npos
               ? 1
               : 0;
  }));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_text_file(path), before);
}

TEST(AppendCsv, FindsTheFileThatReplacedTheLockedOne) {
  const ScratchFolder folder;
  const std::string path = folder.file("r.csv");
  append(path, full_row("old"));
  const int locked = ::open(path.c_str(), O_RDONLY);
  ASSERT_EQ(::flock(locked, LOCK_EX), 0);
  std::thread appender([&] { append(path, full_row("late")); });
  ::usleep(50000);
  const std::vector<BenchRow> updated = {full_row("updated")};
  write_bench_csv(path, updated);
  ::close(locked);
  appender.join();
  EXPECT_THAT(read_bench_csv(path).rows, ElementsAre(full_row("updated"), full_row("late")));
}

}  // namespace
}  // namespace halftone
