// A program of its own, because it replaces malloc: runs of a compiled model that were made before must not
// ask for memory.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "graph/test_support.h"
#include "halftone/compile/compile.h"

namespace {
std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};
std::atomic<size_t> largest{0};
std::atomic<int64_t> live{0}, max_live{0};

template <typename T>
void raise_to(std::atomic<T>& most, T value) {
  T seen = most.load();
  while (value > seen && !most.compare_exchange_weak(seen, value)) {
  }
}

void count(size_t bytes) {
  if (!counting.load(std::memory_order_relaxed)) return;
  ++allocations;
  raise_to(largest, bytes);
}

void* counted(void* memory) {
  if (counting.load(std::memory_order_relaxed)) {
    live += static_cast<int64_t>(malloc_usable_size(memory));
    raise_to(max_live, live.load());
  }
  return memory;
}
}  // namespace

// glibc's own names behind the ones that programs use; every library of the process comes through here, so these are
// visible, which the program's other functions are not.
#pragma GCC visibility push(default)
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
void free(void* memory) {
  if (memory && counting.load(std::memory_order_relaxed))
    live -= static_cast<int64_t>(malloc_usable_size(memory));
  __libc_free(memory);
}
void* malloc(size_t bytes) {
  count(bytes);
  return counted(__libc_malloc(bytes));
}
void* calloc(size_t number, size_t bytes) {
  count(number * bytes);
  return __libc_calloc(number, bytes);
}
void* realloc(void* old, size_t bytes) {
  count(bytes);
  return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** result, size_t alignment, size_t bytes) {
  count(bytes);
  *result = counted(__libc_memalign(alignment, bytes));
  return *result ? 0 : ENOMEM;
}
}
#pragma GCC visibility pop

namespace halftone {
namespace {

template <typename Action>
int64_t allocations_of(Action action) {
  allocations = 0;
  largest = 0;
  live = max_live = 0;
  counting = true;
  action();
  counting = false;
  return allocations;
}

/// An encoder layer: joined projections, attention, residuals, norms, a feed-forward block.
std::shared_ptr<GraphModule> encoder_layer() {
  TensorMap tensors;
  for (const char* name : {"q", "k", "v", "o"}) tensors[name] = at::randn({64, 64}) * 0.1;
  tensors["up"] = at::randn({128, 64}) * 0.1;
  tensors["down"] = at::randn({64, 128}) * 0.1;
  tensors["gamma"] = at::ones({64});
  return module_from_text(R"(
graph(%q: parameter "q" f32[64, 64], %k: parameter "k" f32[64, 64], %v: parameter "v" f32[64, 64], %o: parameter "o" f32[64, 64],
      %up: parameter "up" f32[128, 64], %down: parameter "down" f32[64, 128], %g: parameter "gamma" f32[64],
      %x: user "x" f32[s0, s1, 64]) {
  %n: int(s0) = aten::sym_size.int(%x, 0)
  %m: int(s1) = aten::sym_size.int(%x, 1)
  %q1: f32[s0, s1, 64] = aten::linear(%x, %q)
  %q2: f32[s0, s1, 4, 16] = aten::view(%q1, [%n, %m, 4, 16])
  %q3: f32[s0, 4, s1, 16; 64*s1, 16, 64, 1] = aten::transpose.int(%q2, 1, 2)
  %k1: f32[s0, s1, 64] = aten::linear(%x, %k)
  %k2: f32[s0, s1, 4, 16] = aten::view(%k1, [%n, %m, 4, 16])
  %k3: f32[s0, 4, s1, 16; 64*s1, 16, 64, 1] = aten::transpose.int(%k2, 1, 2)
  %v1: f32[s0, s1, 64] = aten::linear(%x, %v)
  %v2: f32[s0, s1, 4, 16] = aten::view(%v1, [%n, %m, 4, 16])
  %v3: f32[s0, 4, s1, 16; 64*s1, 16, 64, 1] = aten::transpose.int(%v2, 1, 2)
  %a1: f32[s0, 4, s1, 16; 64*s1, 16, 64, 1] = aten::scaled_dot_product_attention(%q3, %k3, %v3)
  %a2: f32[s0, s1, 4, 16] = aten::transpose.int(%a1, 1, 2)
  %a3: f32[s0, s1, 64] = aten::reshape(%a2, [%n, %m, 64])
  %a4: f32[s0, s1, 64] = aten::linear(%a3, %o)
  %r1: f32[s0, s1, 64] = aten::add.Tensor(%a4, %x)
  %h: f32[s0, s1, 64] = aten::layer_norm(%r1, [64], %g)
  %f1: f32[s0, s1, 128] = aten::linear(%h, %up)
  %f2: f32[s0, s1, 128] = aten::gelu(%f1)
  %f3: f32[s0, s1, 64] = aten::linear(%f2, %down)
  %r2: f32[s0, s1, 64] = aten::add.Tensor(%f3, %h)
  %y: f32[s0, s1, 64] = aten::layer_norm(%r2, [64], %g)
  return %y
})",
                          std::move(tensors));
}

TEST(Allocations, TheCounterCounts) {
  EXPECT_GE(allocations_of([] { const at::Tensor t = at::empty({1000}); }), 2);
  EXPECT_GE(largest, 4000u);
}

TEST(Allocations, ARunIntoGivenOutputsMakesNone) {
  const auto compiled = compile(encoder_layer());
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    for (const auto& [batch, length] : {std::pair{1, 3}, {4, 32}}) {
      const std::vector<c10::IValue> inputs = {at::randn({batch, length, 64})};
      const std::vector<at::Tensor> outputs = {at::empty({batch, length, 64})};
      ASSERT_TRUE(compiled->report(inputs).left_to_aten.empty());
      for (int i = 0; i < 3; ++i) compiled->run_into(inputs, outputs);
      EXPECT_EQ(allocations_of([&] { compiled->run_into(inputs, outputs); }), 0)
          << threads << " threads, batch " << batch;
    }
  }
}

TEST(Allocations, ARunOfConvolutionsMakesNone) {
  at::manual_seed(1);
  TensorMap tensors = {{"a", at::randn({16, 3, 7, 7}) * 0.1},
                       {"b", at::randn({16, 16, 3, 3}) * 0.1},
                       {"c", at::randn({16, 1, 3, 3}) * 0.1},
                       {"d", at::randn({16, 16, 1, 1}) * 0.1}};
  const auto compiled = compile(module_from_text(R"(
graph(%a: parameter "a" f32[16, 3, 7, 7], %b: parameter "b" f32[16, 16, 3, 3], %c: parameter "c" f32[16, 1, 3, 3],
      %d: parameter "d" f32[16, 16, 1, 1], %x: user "x" f32[s0, 3, 32, 32]) {
  %v0: f32[s0, 16, 16, 16] = aten::conv2d(%x, %a, None, [2, 2], [3, 3])
  %v1: f32[s0, 16, 16, 16] = aten::relu(%v0)
  %v2: f32[s0, 16, 8, 8] = aten::max_pool2d(%v1, [3, 3], [2, 2], [1, 1])
  %v3: f32[s0, 16, 8, 8] = aten::conv2d(%v2, %b, None, [1, 1], [1, 1])
  %v4: f32[s0, 16, 8, 8] = aten::conv2d(%v3, %c, None, [1, 1], [1, 1], [1, 1], 16)
  %v5: f32[s0, 16, 8, 8] = aten::conv2d(%v4, %d)
  %v6: f32[s0, 16, 8, 8] = aten::add.Tensor(%v5, %v2)
  %y: f32[s0, 16] = aten::mean.dim(%v6, [2, 3])
  return %y
})",
                                                 std::move(tensors)));
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    const std::vector<c10::IValue> inputs = {at::randn({2, 3, 32, 32})};
    const std::vector<at::Tensor> outputs = {at::empty({2, 16})};
    ASSERT_TRUE(compiled->report(inputs).left_to_aten.empty());
    for (int i = 0; i < 3; ++i) compiled->run_into(inputs, outputs);
    EXPECT_EQ(allocations_of([&] { compiled->run_into(inputs, outputs); }), 0) << threads << " threads";
  }
}

TEST(Allocations, ARunMakesItsOutputsAndNothingLarge) {
  const auto compiled = compile(encoder_layer());
  const std::vector<c10::IValue> inputs = {at::randn({4, 32, 64})};
  for (int i = 0; i < 3; ++i) compiled->run(inputs);
  const int64_t found = allocations_of([&] { compiled->run(inputs); });
  // The list of results; of the result tensor its object, storage and memory; and the same for the flat
  // tensor under it.
  EXPECT_LE(found, 8);
  EXPECT_EQ(largest, size_t{4} * 32 * 64 * 4);
}

TEST(Allocations, WhatAtenReturnedIsFreedAfterItsLastUse) {
  constexpr int64_t kElements = 1 << 18, kSteps = 32;
  const std::string type = "f32[" + std::to_string(kElements) + "]";
  std::string text = "graph(%x0: user \"x\" " + type + ") {\n";
  for (int i = 1; i <= kSteps; ++i)
    text += "  %x" + std::to_string(i) + ": " + type + " = aten::sin(%x" + std::to_string(i - 1) + ")\n";
  const auto compiled = compile(module_from_text(text + "  return %x" + std::to_string(kSteps) + "\n}"));
  const std::vector<c10::IValue> inputs = {at::ones({kElements})};
  ASSERT_EQ(compiled->report(inputs).left_to_aten.size(), size_t{kSteps});
  allocations_of([&] { compiled->run(inputs); });
  EXPECT_LT(max_live, 3 * kElements * 4);
}

}  // namespace
}  // namespace halftone
