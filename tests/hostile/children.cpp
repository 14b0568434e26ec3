#include "children.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "compiler/executor/memory/guarded_memory.h"
#include "halftone/base/error.h"
#include "halftone/graph/limits.h"
#include "trial.h"

#ifdef __SANITIZE_ADDRESS__
// libtorch is not instrumented: vectors that it fills look overrun, its globals doubled. Its caches leak by
// intention. Too large an allocation is the caller's error, as without the sanitizer.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:detect_odr_violation=0:detect_container_overflow=0:alloc_dealloc_mismatch=0:"
         "allocator_may_return_null=1:malloc_context_size=4:quarantine_size_mb=32:exitcode=99:"
         "intercept_tls_get_addr=0";  // only leaks need it, and torch asks for its thread's state all the
                                      // time
}
extern "C" const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}
#endif

namespace halftone::hostile {
namespace {

/// Of the processor, so that a busy machine makes no hangs; and of the clock, for what only waits.
constexpr unsigned kSecondsOfOne = 20;
constexpr unsigned kWaitingForOne = 600;
/// That a child may take more than its parent has: what asks for more, rightly or not, is an error at once.
constexpr uint64_t kMemory = uint64_t{2} << 30;
constexpr uint64_t kBatch = 1000;  ///< of one child

struct Range {
  uint64_t begin = 0, end = 0;
};

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return text.substr(0, 600);
}

void limit_time(bool on) {
  alarm(on ? kWaitingForOne : 0);
  const itimerval limit{{0, 0}, {on ? kSecondsOfOne : 0, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

/// How a child ended that did not come to its end.
std::string end_of(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("exit code {}", WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGPROF) return fmt::format("did not end in {} s", kSecondsOfOne);
  if (WTERMSIG(status) == SIGALRM) return fmt::format("waited for {} s", kWaitingForOne);
  return fmt::format("ended by signal {}", WTERMSIG(status));
}

/// A limit of the whole address space, of which sanitizers take terabytes.
void limit_memory() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + kMemory;
  const rlimit memory{bytes, bytes}, no_core{0, 0};
  setrlimit(RLIMIT_AS, &memory);
  setrlimit(RLIMIT_CORE, &no_core);
}

/// What a sanitizer or an abort says, in a line.
std::string last_words(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line)) {
    if (line.find("SUMMARY: ") != std::string::npos) return " " + one_line(line);
    if (line.find("runtime error: ") != std::string::npos) return " " + one_line(line);
    if (!line.empty()) last = line;
  }
  return last.empty() ? "" : " " + one_line(last);
}

/// One child and the lines that it sends: outcome, item, detail; before it "s" and a step, "l" and a layout,
/// those that it has not sent before.
class Child {
 public:
  Child(Range range, const ChildrenOptions& options, size_t number, Tally& tally)
      : range_(range),
        options_(options),
        tally_(tally),
        errors_(fmt::format("{}/stderr.{}", options.folder, number)),
        current_(static_cast<uint64_t*>(
            mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    int ends[2];
    if (current_ == MAP_FAILED || pipe(ends) != 0) throw Error(ErrorCode::kIo, "no memory for a child");
    *current_ = range.begin;
    pid_ = fork();
    if (pid_ < 0) throw Error(ErrorCode::kIo, "fork failed");
    if (pid_ == 0) {
      close(ends[0]);
      work(ends[1]);
    }
    close(ends[1]);
    in_ = ends[0];
  }
  ~Child() {
    close(in_);
    munmap(current_, sizeof(uint64_t));
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int descriptor() const { return in_; }

  /// Reads what there is; false when the child has nothing more to say.
  bool read_some() {
    char bytes[1 << 16];
    const ssize_t count = read(in_, bytes, sizeof bytes);
    if (count <= 0) return false;
    unread_.append(bytes, static_cast<size_t>(count));
    size_t begin = 0;
    for (size_t end; (end = unread_.find('\n', begin)) != std::string::npos; begin = end + 1)
      read_line(unread_.substr(begin, end - begin));
    unread_.erase(0, begin);
    return true;
  }

  /// Waits for its end; gives what is left to try.
  Range finish() {
    int status = 0;
    waitpid(pid_, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {range_.end, range_.end};
    tally_.add_crash(*current_, end_of(status) + last_words(errors_));
    options_.failed(*current_, tally_.failures.back().second);
    return {*current_ + 1, range_.end};
  }

 private:
  [[noreturn]] void work(int out) {
    limit_memory();
    const int errors = open(errors_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (errors < 0 || dup2(errors, STDERR_FILENO) < 0) _exit(1);
    compiler::set_guarded_plan_memory(true);
    set_max_steps(2000);  // each takes a mapping or two here
    FILE* lines = fdopen(out, "w");
    std::set<std::string> sent;
    const auto send_once = [&](const std::set<std::string>& items, const char* kind) {
      for (const std::string& item : items) {
        std::string line = kind + one_line(item);
        if (sent.insert(line).second) fmt::print(lines, "{}\n", line);
      }
    };
    for (uint64_t item = range_.begin; item < range_.end; ++item) {
      *current_ = item;
      const std::string path = options_.file_of(item);
      limit_time(true);
      const TrialResult result = try_file(path);
      limit_time(false);
      send_once(result.steps, "s\t");
      send_once(result.layouts, "l\t");
      fmt::print(lines, "{}\t{}\t{}\n", static_cast<int>(result.outcome), item, one_line(result.detail));
      std::fflush(lines);
      options_.done_with(item);
    }
    _exit(0);
  }

  void read_line(const std::string& line) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) return;
    const std::string head = line.substr(0, tab), rest = line.substr(tab + 1);
    if (head == "s") {
      result_.steps.insert(rest);
    } else if (head == "l") {
      result_.layouts.insert(rest);
    } else {
      const size_t second = rest.find('\t');
      result_.outcome = static_cast<TrialResult::Outcome>(std::stoi(head));
      result_.detail = rest.substr(second + 1);
      const uint64_t item = std::stoull(rest.substr(0, second));
      tally_.add(item, result_);
      if (result_.outcome == TrialResult::Outcome::kWrong) options_.failed(item, result_.detail);
      result_ = {};
    }
  }

  Range range_;
  const ChildrenOptions& options_;
  Tally& tally_;
  std::string errors_;
  uint64_t* current_;  ///< shared with the child: what it is doing now
  pid_t pid_ = -1;
  int in_ = -1;
  std::string unread_;
  TrialResult result_;
};

/// A batch: what is left to try of it, what came of the rest, and the child that is at it.
struct Batch {
  Range left;
  Tally tally;
  std::unique_ptr<Child> child;
};

}  // namespace

void try_in_children(Tally& tally, uint64_t end, const ChildrenOptions& options) {
  uint64_t begin = tally.next;
  std::vector<std::unique_ptr<Batch>> batches(options.jobs);
  std::map<uint64_t, std::unique_ptr<Batch>> done;  // by their first item: they end in any order
  while (true) {
    std::vector<pollfd> waiting;
    for (size_t i = 0; i < batches.size(); ++i) {
      std::unique_ptr<Batch>& batch = batches[i];
      if (!batch && begin < end && options.go_on(tally)) {
        batch = std::make_unique<Batch>();
        batch->left = {begin, std::min(end, begin + kBatch)};
        batch->tally.first = begin;
        batch->tally.next = begin = batch->left.end;
      }
      if (batch && !batch->child)
        batch->child = std::make_unique<Child>(batch->left, options, i, batch->tally);
      waiting.push_back({batch ? batch->child->descriptor() : -1, POLLIN, 0});
    }
    if (std::none_of(batches.begin(), batches.end(), [](const auto& batch) { return batch != nullptr; }))
      return;
    poll(waiting.data(), waiting.size(), -1);
    for (size_t i = 0; i < batches.size(); ++i) {
      std::unique_ptr<Batch>& batch = batches[i];
      if (!batch || waiting[i].revents == 0 || batch->child->read_some()) continue;
      batch->left = batch->child->finish();
      batch->child.reset();
      if (batch->left.begin == batch->left.end) done[batch->tally.first] = std::move(batch);
    }
    while (!done.empty() && done.begin()->first == tally.next) {
      tally.merge(done.begin()->second->tally);
      done.erase(done.begin());
    }
  }
}

}  // namespace halftone::hostile
