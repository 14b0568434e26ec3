// Splits the work of a kernel into independent tasks: an interface that the caller implements, and the serial
// one.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace halftone {

/// A callable that is borrowed, never owned: valid only while the call it was passed to runs. No allocation,
/// unlike std::function.
class SplitTask {
 public:
  template <typename Callable,
            typename = std::enable_if_t<!std::is_same_v<std::decay_t<Callable>, SplitTask>>>
  SplitTask(const Callable& callable)  // NOLINT(google-explicit-constructor)
      : object_(std::addressof(callable)), call_([](const void* object, int64_t index, int thread) {
          (*static_cast<const Callable*>(object))(index, thread);
        }) {}
  void operator()(int64_t index, int thread) const { call_(object_, index, thread); }

 private:
  const void* object_;
  void (*call_)(const void*, int64_t, int);
};

/// Runs `task(index, thread)` once for every index in [0, count), in any order, on up to threads() threads,
/// and returns when all are done. `thread` is in [0, threads()) and no two calls with the same `thread`
/// overlap, so it may index scratch memory. The first exception of a task is thrown again by run() after the
/// others ended; remaining indices may be skipped then.
class ParallelFor {
 public:
  virtual ~ParallelFor() = default;
  virtual int threads() const = 0;
  virtual void run(int64_t count, SplitTask task) = 0;
};

/// Everything in the calling thread.
class SerialFor final : public ParallelFor {
 public:
  int threads() const override { return 1; }
  void run(int64_t count, SplitTask task) override {
    for (int64_t i = 0; i < count; ++i) task(i, 0);
  }
};

}  // namespace halftone
