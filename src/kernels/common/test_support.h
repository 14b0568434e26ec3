// Shared by the kernel tests: buffers that end at an unreadable page, a small generator, the kernels
// that run here.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "kernels/common/epilogue.h"

namespace halftone::kernels::testing {

/// `count` elements that end `tail` bytes before an unreadable page, so that reading or writing past the end
/// is a crash, on top of what sanitizers see; what was written before the start is found at the end. With 0
/// the start is as misaligned as the size makes it.
template <typename T>
class Guarded {
 public:
  explicit Guarded(int64_t count, T fill = T{}) : count_(count) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    mapped_ = (bytes + page - 1) / page * page + page;
    base_ = static_cast<char*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + mapped_ - page, page, PROT_NONE) != 0) std::abort();
    data_ = reinterpret_cast<T*>(base_ + mapped_ - page - bytes);
    std::memset(base_, kUntouched, front());
    for (int64_t i = 0; i < count; ++i) data_[i] = fill;
  }
  ~Guarded() {
    const auto* begin = reinterpret_cast<const unsigned char*>(base_);
    for (size_t i = 0; i < front(); ++i) {
      if (begin[i] != kUntouched) {
        ADD_FAILURE() << "written " << front() - i << " bytes before the start of a buffer";
        break;
      }
    }
    munmap(base_, mapped_);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  int64_t size() const { return count_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }
  std::vector<T> copy() const { return std::vector<T>(data_, data_ + count_); }

 private:
  static constexpr unsigned char kUntouched = 0xa5;
  size_t front() const { return static_cast<size_t>(reinterpret_cast<char*>(data_) - base_); }

  int64_t count_;
  char* base_;
  size_t mapped_;
  T* data_;
};

/// Memory aligned to 64 bytes that ends at an unreadable page, up to the alignment, for packed weights.
class Aligned {
 public:
  explicit Aligned(size_t bytes) : store_(static_cast<int64_t>((bytes + 63) / 64 * 64), 0xcd) {}
  void* data() { return store_.data(); }

 private:
  Guarded<unsigned char> store_;
};

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int integer(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(engine_); }
  float normal(float sigma = 1.0f) { return std::normal_distribution<float>(0.0f, sigma)(engine_); }
  template <typename Buffer>
  void fill_normal(Buffer& buffer, float sigma = 1.0f) {
    for (int64_t i = 0; i < static_cast<int64_t>(buffer.size()); ++i) buffer[i] = normal(sigma);
  }

 private:
  std::mt19937 engine_;
};

/// A pool of two that remembers which threads ran a task: a test asks whether the work was really split.
/// Where there is more than one task, the first thread waits for a second, which the pool itself would not
/// do.
class CountingParallelFor final : public ParallelFor {
 public:
  int threads() const override { return pool_.threads(); }
  void run(int64_t count, SplitTask task) override {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    pool_.run(count, [&](int64_t index, int thread) {
      note_thread();
      while (count > 1 && threads_seen() < 2 && std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
      task(index, thread);
    });
  }
  size_t threads_seen() const {
    const std::lock_guard lock(mutex_);
    return seen_.size();
  }

 private:
  void note_thread() {
    const std::lock_guard lock(mutex_);
    seen_.insert(std::this_thread::get_id());
  }
  ThreadPool pool_{2};
  mutable std::mutex mutex_;
  std::set<std::thread::id> seen_;
};

/// The entries of a table that this machine can run.
template <typename Kernel>
std::vector<Kernel> runnable(std::span<const Kernel> table) {
  std::vector<Kernel> kernels;
  for (const Kernel& kernel : table) {
    if (kernel.isa <= machine_isa()) kernels.push_back(kernel);
  }
  return kernels;
}

/// Adds the entry of `table` whose `member` is `wide`, with `emulated` in its place: an AVX-512 kernel on a
/// machine that has only AVX2.
template <typename Kernel, typename Function>
void add_emulated(std::vector<Kernel>& kernels, std::span<const Kernel> table, Function* Kernel::*member,
                  Function* wide, Function* emulated, const char* name) {
  if (machine_isa() < Isa::kAvx2) return;
  for (Kernel kernel : table) {
    if (kernel.*member != wide) continue;
    kernel.name = name;
    kernel.isa = Isa::kAvx2;
    kernel.*member = emulated;
    kernels.push_back(kernel);
  }
}

/// The definition of an activation, in double precision.
inline double exact_activation(double x, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kGeluErf:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      return x / (1.0 + std::exp(-2.0 * std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
  }
  return 0;
}

/// Every table keeps this order: best first, scalar last, names that end with the level, no name twice.
template <typename Kernel>
void expect_well_formed(std::span<const Kernel> table, const char* operation) {
  ASSERT_FALSE(table.empty());
  EXPECT_EQ(table.back().isa, Isa::kScalar);
  for (size_t i = 0; i < table.size(); ++i) {
    const std::string name = table[i].name, level(to_string(table[i].isa));
    EXPECT_EQ(name.rfind(operation, 0), 0u) << name;
    EXPECT_TRUE(name.ends_with(level)) << name;
    if (i > 0) {
      EXPECT_GE(table[i - 1].isa, table[i].isa) << name;
      EXPECT_STRNE(table[i - 1].name, table[i].name);
    }
  }
}

}  // namespace halftone::kernels::testing
