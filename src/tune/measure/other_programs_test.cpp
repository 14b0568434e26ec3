#include "tune/measure/other_programs.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <thread>

namespace halftone {
namespace {

/// A process that never waits.
class BusyProcess {
 public:
  BusyProcess() : process_(fork()) {
    if (process_ != 0) return;
    volatile double number = 1;
    for (;;) number = number * 0.999999 + 1e-6;
  }
  ~BusyProcess() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  BusyProcess(const BusyProcess&) = delete;
  BusyProcess& operator=(const BusyProcess&) = delete;

  double used_ms() const {
    clockid_t clock{};
    timespec used{};
    EXPECT_EQ(clock_getcpuclockid(process_, &clock), 0);
    EXPECT_EQ(clock_gettime(clock, &used), 0);
    return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) * 1e-6;
  }

 private:
  pid_t process_;
};

void pause_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// Others may run here too, so that only the least is known.
TEST(OtherPrograms, CountsABusyProcessFromWhenItIsKnown) {
  const BusyProcess busy;
  OtherPrograms others;
  const double first = busy.used_ms();
  pause_ms(200);
  const double unknown = others.busy_ms();
  EXPECT_EQ(unknown, 0);  // nobody is known before the second look
  others.look();
  const double known = busy.used_ms();
  EXPECT_GT(known - first, 1) << "it had no processor: nothing is tested";
  EXPECT_GE(others.busy_ms(), known - first - 1);  // what it used before counts too
  for (int turn = 0; turn < 20; ++turn) {
    const double before = others.busy_ms(), used_before = busy.used_ms();
    pause_ms(1);
    const double used = busy.used_ms() - used_before;
    EXPECT_GE(others.busy_ms() - before, used - 1e-6) << turn;
  }
}

TEST(OtherPrograms, ForgetsTheDead) {
  OtherPrograms others;
  {
    const BusyProcess busy;
    others.look();
    pause_ms(50);
    others.look();
  }
  const double before = others.busy_ms();
  EXPECT_GE(before, 0);
  others.look();
  EXPECT_GE(others.busy_ms(), before);
}

}  // namespace
}  // namespace halftone
