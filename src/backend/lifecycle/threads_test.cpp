// Many threads on one backend: each call is right bit for bit, or refused; none waits endlessly. Compiled a
// second time with the thread sanitizer.
#include <ATen/Parallel.h>

#include <atomic>
#include <random>
#include <thread>

#include "backend/lifecycle/test_support.h"

namespace halftone {
namespace {

constexpr int kThreads = 8, kCalls = 10'000, kToggles = 1'000;

/// What came of the calls of all threads.
struct Tally {
  std::atomic<int> right{0}, refused{0}, wrong{0};
};

/// One call; anything but the expected bytes or a refusal is wrong.
void call_once(const Backend& backend, const at::Tensor& x, const at::Tensor& expected, Tally& tally) {
  try {
    const at::Tensor found = infer_one(backend, x);
    ++(at::equal(found, expected) ? tally.right : tally.wrong);
  } catch (const Error& error) {
    ++(error.code() == ErrorCode::kState ? tally.refused : tally.wrong);
  }
}

std::vector<std::thread> start(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  return threads;
}

void join(std::vector<std::thread>& threads) {
  for (std::thread& thread : threads) thread.join();
}

/// Native kernels and the interpreter: with one thread a call, both give the same bytes each time.
class LifecycleThreads : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};
INSTANTIATE_TEST_SUITE_P(Kinds, LifecycleThreads,
                         testing::Values("EagerBackend", "HalftoneBackend", "QuantBackend"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(LifecycleThreads, CallsAgainstTogglesAreRightOrRefused) {
  Backend backend(GetParam());
  const at::Tensor x = test_input(2);
  backend.build(small_model(), {}, {{{x}, {}}});
  const at::Tensor expected = infer_one(backend, x);
  Tally tally;
  // Calls and changes of state keep pace, so that each state meets calls: of each thread so many for a
  // change.
  constexpr int kPace = kCalls / kToggles / 2;
  std::atomic<int> changes{0}, calls{0};
  auto threads = start(kThreads, [&, backend](int) {
    for (int call = 0; call < kCalls; ++call) {
      for (int done = changes; call >= (done + 1) * kPace; done = changes) changes.wait(done);
      call_once(backend, x, expected, tally);
      ++calls;
    }
  });
  const auto change = [&](void (Backend::*method)()) {
    // In the middle of the calls that may run in this state.
    while (calls < (2 * changes + 1) * kPace * kThreads / 2) std::this_thread::yield();
    (backend.*method)();
    ++changes;
    changes.notify_all();
  };
  for (int toggle = 0; toggle < kToggles; ++toggle) {
    change(&Backend::deactivate);
    change(&Backend::activate);
  }
  join(threads);
  EXPECT_EQ(tally.wrong, 0);
  EXPECT_GT(tally.right, 0);
  EXPECT_GT(tally.refused, 0);
  EXPECT_EQ(tally.right + tally.refused, kThreads * kCalls);
  EXPECT_TRUE(at::equal(infer_one(backend, x), expected));
  std::printf("%s: %d calls right, %d refused, %d changes\n", GetParam(), tally.right.load(),
              tally.refused.load(), changes.load());
}

TEST_P(LifecycleThreads, HandlesMayGoWhileOthersRun) {
  const at::Tensor x = test_input(2);
  Tally tally;
  for (int round = 0; round < 20; ++round) {
    auto first = std::make_unique<Backend>(GetParam());
    first->build(small_model(), {}, {});
    const at::Tensor expected = infer_one(*first, x);
    // Each thread's handle goes when it is done: the last one takes the backend with it.
    auto threads = start(kThreads, [&tally, &x, &expected, handle = *first](int thread) mutable {
      const Backend own = handle;
      for (int call = 0; call < 20 + thread; ++call) call_once(own, x, expected, tally);
    });
    first.reset();
    join(threads);
  }
  EXPECT_EQ(tally.wrong + tally.refused, 0);
}

TEST_P(LifecycleThreads, DeployRacesWithCalls) {
  const auto recipe = make_backend_recipe(GetParam());
  const at::Tensor x = test_input(2);
  const at::Tensor expected = infer_one(built(recipe), x);
  Tally tally;
  for (int round = 0; round < 20; ++round) {
    Backend backend = loaded(recipe);
    std::atomic<bool> deployed{false};
    std::atomic<int> deployments{0}, refusals{0};
    auto threads = start(kThreads, [&, backend](int thread) mutable {
      if (thread < 2) {  // two want to deploy: one does, the other one is refused
        try {
          backend.deploy();
          ++deployments;
        } catch (const Error& error) {
          refusals += error.code() == ErrorCode::kState;
        }
        deployed = true;
      }
      for (int call = 0; call < 50 || !deployed; ++call) call_once(backend, x, expected, tally);
    });
    join(threads);
    ASSERT_EQ(deployments, 1);
    ASSERT_EQ(refusals, 1);
    ASSERT_EQ(backend.state(), BackendState::kDeployed);
  }
  EXPECT_EQ(tally.wrong, 0);
  EXPECT_GT(tally.right, 0);
}

TEST_P(LifecycleThreads, ChangesOfStateFromSeveralThreadsAreOneAfterTheOther) {
  Backend backend(GetParam());
  const at::Tensor x = test_input(2);
  backend.build(small_model(), {}, {});
  const at::Tensor expected = infer_one(backend, x);
  Tally tally;
  auto threads = start(kThreads, [&, backend](int thread) mutable {
    std::mt19937 random(static_cast<unsigned>(thread));
    for (int step = 0; step < kToggles / 10; ++step) {
      switch (random() % 4) {
        case 0:
          backend.activate();
          break;
        case 1:
          backend.deactivate();
          break;
        case 2:
          BackendAccess::content(backend);
          break;
        default:
          call_once(backend, x, expected, tally);
      }
    }
  });
  join(threads);
  EXPECT_EQ(tally.wrong, 0);
  backend.activate();
  EXPECT_TRUE(at::equal(infer_one(backend, x), expected));
}

}  // namespace
}  // namespace halftone
