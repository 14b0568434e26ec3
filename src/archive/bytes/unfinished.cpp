#include "archive/bytes/unfinished.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <utility>

#include "halftone/cli/interrupt.h"

namespace halftone {
namespace {

// A signal handler may neither lock nor allocate: the paths stand in a table of fixed size.
constexpr int kSlots = 64;
constexpr size_t kLongestPath = 4096;
enum SlotState { kFree, kFilling, kReady };

struct Slot {
  std::atomic<int> state{kFree};
  char path[kLongestPath] = {};
};
Slot slots[kSlots];
std::atomic<bool> finished_a_file{false};

void say(const char* text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

void interrupted(int signal) {
  // All files before all folders, whose order in the table says nothing: slots are used again. A folder goes
  // before one that it stands in.
  for (const Slot& slot : slots)
    if (slot.state.load() == kReady) ::unlink(slot.path);
  for (int i = kSlots - 1; i >= 0; --i)
    if (slots[i].state.load() == kReady) ::rmdir(slots[i].path);
  say(finished_a_file.load() ? "\nhalftone: interrupted\n" : "\nhalftone: interrupted; nothing written\n");
  ::_exit(128 + signal);
}

}  // namespace

Unfinished::Unfinished(const std::string& path) {
  if (path.size() >= kLongestPath) return;
  for (int i = 0; i < kSlots; ++i) {
    int expected = kFree;
    if (!slots[i].state.compare_exchange_strong(expected, kFilling)) continue;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].state = kReady;
    slot_ = i;
    return;
  }
}

Unfinished::~Unfinished() {
  if (slot_ >= 0) slots[slot_].state = kFree;
}

Unfinished::Unfinished(Unfinished&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}

Unfinished& Unfinished::operator=(Unfinished&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

void note_finished_file() {
  finished_a_file = true;
}

void end_on_interrupt() {
  struct sigaction action {};
  action.sa_handler = interrupted;
  sigfillset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

}  // namespace halftone
