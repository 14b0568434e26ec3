#include "compiler/executor/memory/memory.h"

#include <gtest/gtest.h>

#include <random>

namespace halftone::compiler {
namespace {

void expect_sound(const std::vector<Lifetime>& lifetimes, const ArenaLayout& layout) {
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    EXPECT_EQ(layout.offsets[i] % kArenaAlignment, 0u);
    EXPECT_LE(layout.offsets[i] + lifetimes[i].bytes, layout.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together =
          lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last;
      const bool apart = layout.offsets[i] + lifetimes[i].bytes <= layout.offsets[j] ||
                         layout.offsets[j] + lifetimes[j].bytes <= layout.offsets[i];
      EXPECT_TRUE(!together || apart) << i << " and " << j;
    }
  }
}

TEST(ArenaLayout, ReusesWhatIsDead) {
  const std::vector<Lifetime> chain = {{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}, {1000, 3, 4}};
  const ArenaLayout layout = lay_out(chain);
  expect_sound(chain, layout);
  EXPECT_EQ(layout.bytes, 2 * 1024u);
}

TEST(ArenaLayout, FillsGaps) {
  const std::vector<Lifetime> lifetimes = {{640, 0, 9}, {640, 0, 2}, {640, 0, 9}, {64, 4, 6}, {320, 5, 8}};
  const ArenaLayout layout = lay_out(lifetimes);
  expect_sound(lifetimes, layout);
  EXPECT_EQ(layout.bytes, 3 * 640u);
}

TEST(ArenaLayout, EmptyAndZeroBytes) {
  EXPECT_EQ(lay_out({}).bytes, 0u);
  EXPECT_EQ(lay_out({{0, 0, 3}, {0, 1, 2}}).bytes, 0u);
}

TEST(ArenaLayout, RandomLifetimesNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> lifetimes(random() % 60);
    size_t most = 0;
    for (Lifetime& each : lifetimes) {
      each.bytes = random() % 5000;
      each.first = static_cast<int>(random() % 40);
      each.last = each.first + static_cast<int>(random() % 10);
    }
    for (int step = 0; step < 50; ++step) {
      size_t alive = 0;
      for (const Lifetime& each : lifetimes)
        alive += each.first <= step && step <= each.last ? each.bytes : 0;
      most = std::max(most, alive);
    }
    const ArenaLayout layout = lay_out(lifetimes);
    expect_sound(lifetimes, layout);
    EXPECT_GE(layout.bytes, most);
  }
}

}  // namespace
}  // namespace halftone::compiler
