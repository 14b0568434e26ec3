#include "compiler/executor/memory/guarded_memory.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graph/test_support.h"
#include "halftone/compile/compile.h"

namespace halftone::compiler {
namespace {

class GuardedMemory : public ::testing::Test {
 protected:
  void SetUp() override { set_guarded_plan_memory(true); }
  void TearDown() override { set_guarded_plan_memory(false); }
};

using GuardedMemoryDeathTest = GuardedMemory;

TEST_F(GuardedMemoryDeathTest, TheByteBehindTheLastFaults) {
  for (const size_t bytes : {size_t{1}, size_t{100}, size_t{4096}, size_t{10000}}) {
    const at::DataPtr memory = guarded_allocate(bytes, 1);
    auto* data = static_cast<volatile char*>(memory.get());
    data[bytes - 1] = 1;
    EXPECT_DEATH(data[bytes] = 1, "");
    EXPECT_DEATH(data[0] = data[bytes], "");
  }
}

TEST_F(GuardedMemoryDeathTest, BytesAroundAlignedMemoryAreCompared) {
  const auto overrun = [](int64_t place) {
    const at::Tensor tensor = at::zeros({100}, at::kByte);
    *(static_cast<char*>(tensor.data_ptr()) + place) = 1;
  };
  overrun(99);
  EXPECT_DEATH(overrun(100), "a buffer of 100 bytes was overrun");
  EXPECT_DEATH(overrun(-1), "a buffer of 100 bytes was overrun");
}

TEST_F(GuardedMemoryDeathTest, FreedMemoryFaults) {
  at::DataPtr memory = guarded_allocate(16, 16);
  auto* data = static_cast<volatile char*>(memory.get());
  memory.clear();
  EXPECT_DEATH(data[0] = 1, "");
}

TEST_F(GuardedMemoryDeathTest, MemoryThatIsUsedAgainIsZeroAndGuarded) {
  for (const size_t bytes : {size_t{100}, size_t{5000}}) {
    std::set<void*> seen;
    bool again = false;
    for (int i = 0; i < 500; ++i) {
      at::DataPtr memory = guarded_allocate(bytes, 1);
      auto* data = static_cast<volatile char*>(memory.get());
      again = again || !seen.insert(memory.get()).second;
      ASSERT_EQ(std::count(data, data + bytes, 0), static_cast<long>(bytes)) << i;
      for (size_t at = 0; at < bytes; ++at) data[at] = 7;
      if (i < 499) continue;
      EXPECT_DEATH(data[bytes] = 1, "");
      memory.clear();
      EXPECT_DEATH(data[0] = 1, "");
    }
    EXPECT_TRUE(again);
    EXPECT_GT(seen.size(), 20U);  // not at once
  }
}

TEST_F(GuardedMemory, PlansGiveTheSameResults) {
  const auto module = module_from_text(R"(
graph(%w: parameter "w" f32[33, 20], %x: user "x" f32[s0, 20]) {
  %a: f32[s0, 33] = aten::linear(%x, %w, None)
  %b: f32[s0, 33] = aten::gelu(%a)
  %c: f32[s0, 33] = aten::softmax.int(%b, -1)
  %d: f32[s0, 66] = aten::cat([%c, %a], 1)
  return %d, %c
})",
                                       {{"w", at::randn({33, 20})}});
  const auto compiled = compile(module);
  for (const int64_t rows : {1, 7, 64}) {
    const at::Tensor x = at::randn({rows, 20});
    const auto expected = Session(module).run({x});
    for (int round = 0; round < 2; ++round) {
      const auto found = compiled->run({x});
      EXPECT_TRUE(at::allclose(found[0].toTensor(), expected[0].toTensor(), 1e-5, 1e-5));
      EXPECT_TRUE(at::allclose(found[1].toTensor(), expected[1].toTensor(), 1e-5, 1e-5));
    }
  }
}

TEST_F(GuardedMemory, MoreThanThereIsIsAnError) {
  EXPECT_THROW(guarded_allocate(size_t{1} << 60, 1), c10::Error);
}

}  // namespace
}  // namespace halftone::compiler
