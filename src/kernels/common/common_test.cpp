#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "halftone/base/error.h"
#include "kernels/common/epilogue.h"
#include "kernels/common/kernel_table.h"
#include "kernels/common/row_blocks.h"
#include "kernels/common/test_support.h"
#include "kernels/common/tiling.h"
#include "kernels/common/workspace.h"

namespace halftone::kernels {
namespace {

// What the tests of all kernels rely on.
TEST(GuardedDeathTest, TheFirstByteBehindABufferIsACrash) {
  testing::Guarded<float> odd(3, 1.0f);
  EXPECT_EQ(odd[2], 1.0f);
  EXPECT_DEATH(
      {
        volatile float beyond = odd.data()[3];
        (void)beyond;
      },
      "");
  EXPECT_DEATH(odd.data()[3] = 0, "");
  testing::Aligned block(100);
  auto* bytes = static_cast<volatile unsigned char*>(block.data());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 64, 0U);
  EXPECT_EQ(bytes[127], 0xcd);
  EXPECT_DEATH(bytes[128] = 0, "");
}

struct Sample {
  const char* name;
  Isa isa;
  const char* (*refuse)(const int&);
};

constexpr Sample kSamples[] = {
    {"best", Isa::kAvx512Vnni, [](const int&) -> const char* { return nullptr; }},
    {"even", Isa::kAvx2, [](const int& n) -> const char* { return n % 2 == 0 ? nullptr : "odd"; }},
    {"any", Isa::kScalar, [](const int& n) -> const char* { return n >= 0 ? nullptr : "negative"; }},
};
constexpr std::span<const Sample> kTable = kSamples;

TEST(KernelTable, ChoosesTheFirstThatDoesNotRefuse) {
  EXPECT_STREQ(choose_kernel(kTable, 3, Isa::kAvx512Vnni).name, "best");
  EXPECT_STREQ(choose_kernel(kTable, 2, Isa::kAvx2).name, "even");
  EXPECT_STREQ(choose_kernel(kTable, 3, Isa::kAvx2).name, "any");
  EXPECT_STREQ(choose_kernel(kTable, 2, Isa::kScalar).name, "any");
}

TEST(KernelTable, FailsWithTheReason) {
  try {
    choose_kernel(kTable, -1, Isa::kScalar);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("negative"));
  }
}

TEST(KernelTable, ExplainsEveryEntry) {
  const auto verdicts = explain_choice(kTable, 3, Isa::kAvx2);
  ASSERT_EQ(verdicts.size(), 3u);
  EXPECT_THAT(verdicts[0].reason, ::testing::HasSubstr("instruction set"));
  EXPECT_EQ(verdicts[1].reason, "odd");
  EXPECT_TRUE(verdicts[2].chosen);
  EXPECT_EQ(explain_choice(kTable, 2, Isa::kAvx2)[2].reason, "a better kernel takes it");
}

TEST(RowBlocks, CoverAllRowsEvenly) {
  for (int64_t m = 0; m < 100; ++m) {
    for (int64_t tallest : {1, 4, 6, 12}) {
      const RowBlocks blocks(m, tallest);
      EXPECT_EQ(blocks.begin(0), 0);
      EXPECT_EQ(blocks.begin(blocks.count()), m);
      for (int64_t b = 0; b < blocks.count(); ++b) {
        const int64_t rows = blocks.begin(b + 1) - blocks.begin(b);
        EXPECT_GE(rows, m / blocks.count());
        EXPECT_LE(rows, tallest);
      }
    }
  }
}

TEST(RowGroups, CoverAllBlocksEvenlyAndLeaveFewToPanels) {
  for (int threads : {1, 2, 3, 16}) {
    for (int64_t most : {4, 8}) {
      for (int64_t blocks = 1; blocks < 400; ++blocks) {
        const RowGroups groups(blocks, most, threads);
        EXPECT_EQ(groups.count() == 0, threads > 1 && blocks < 8 * threads);
        if (groups.count() == 0) continue;
        EXPECT_EQ(groups.count() % threads, 0);
        EXPECT_LE(groups.largest(), most);
        EXPECT_EQ(groups.first(0), 0);
        EXPECT_EQ(groups.first(groups.count()), blocks);
        for (int64_t g = 0; g < groups.count(); ++g) {
          EXPECT_LE(groups.first(g + 1) - groups.first(g), groups.largest());
          EXPECT_GE(groups.first(g + 1) - groups.first(g), groups.largest() - 1);
        }
      }
    }
  }
}

TEST(Workspace, CountsWhatItTakesAtAnyAlignment) {
  Workspace count;
  count.take<char>(3);
  count.take<float>(17);
  const size_t bytes = count.bytes_needed();
  std::vector<char> memory(bytes + 64);
  for (int shift = 0; shift < 64; ++shift) {
    Workspace space(memory.data() + shift, bytes);
    space.take<char>(3);
    float* floats = space.take<float>(17);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(floats) % 64, 0u);
    EXPECT_LE(reinterpret_cast<char*>(floats + 17), memory.data() + shift + bytes);
  }
  Workspace tight(memory.data(), 64);
  EXPECT_THROW(tight.take<char>(200), Error);
}

TEST(Bfloat16, RoundsToNearestEvenAndKeepsNan) {
  const auto round_trip = [](float x) { return from_bfloat16(to_bfloat16(x)); };
  EXPECT_EQ(round_trip(1.0f), 1.0f);
  EXPECT_EQ(round_trip(std::bit_cast<float>(0x3f808000u)),
            std::bit_cast<float>(0x3f800000u));  // tie, down to even
  EXPECT_EQ(round_trip(std::bit_cast<float>(0x3f818000u)),
            std::bit_cast<float>(0x3f820000u));  // tie, up to even
  EXPECT_EQ(round_trip(std::bit_cast<float>(0x3f808001u)), std::bit_cast<float>(0x3f810000u));
  EXPECT_TRUE(std::isinf(round_trip(std::numeric_limits<float>::max())));
  EXPECT_TRUE(std::isnan(round_trip(std::bit_cast<float>(0x7f800001u))));
  EXPECT_TRUE(std::isnan(round_trip(std::bit_cast<float>(0xffffffffu))));
}

TEST(Activation, MatchesItsDefinitionInDouble) {
  for (float x = -12.0f; x < 12.0f; x += 0.0137f) {
    const double d = x;
    const double exact[] = {d, std::max(d, 0.0), d * 0.5 * std::erfc(-d / std::sqrt(2.0)),
                            d / (1.0 + std::exp(-2.0 * std::sqrt(2.0 / M_PI) * (d + 0.044715 * d * d * d))),
                            d / (1.0 + std::exp(-d))};
    for (Activation a : kAllActivations) {
      const double want = exact[static_cast<int>(a)];
      EXPECT_NEAR(activate(x, a), want, kActivationRelative * std::abs(want) + kActivationAbsolute)
          << x << " " << static_cast<int>(a);
    }
  }
  for (Activation a : kAllActivations) EXPECT_TRUE(std::isnan(activate(NAN, a)));
}

// Panels that are multiplied together stay together, however many threads there are.
// Threads take the next task when they are done: no thread may end up with much more than its share.
TEST(Tiling, ThreadsGetEqualShares) {
  for (int64_t blocks : {1, 2, 3, 5, 17, 43, 86, 171}) {
    for (int threads : {2, 3, 4, 8}) {
      const Tiling tiling(blocks, 96, 12 * 1024, threads, 16);
      std::vector<int64_t> load(static_cast<size_t>(threads));
      for (int64_t t = 0; t < tiling.tasks(); ++t) {
        *std::min_element(load.begin(), load.end()) +=
            (tiling.last_block(t) - tiling.first_block(t)) * (tiling.last_panel(t) - tiling.first_panel(t));
      }
      const auto share = static_cast<double>(blocks * 96) / threads;
      EXPECT_EQ(std::accumulate(load.begin(), load.end(), int64_t{0}), blocks * 96);
      EXPECT_LE(static_cast<double>(*std::max_element(load.begin(), load.end())), 1.15 * share)
          << blocks << " blocks, " << threads << " threads";
    }
  }
}

TEST(Tiling, TasksAreWholeUnitsAndCoverEveryPanelOnce) {
  for (int64_t panels : {1, 3, 4, 22, 24, 69, 256}) {
    for (int threads : {1, 2, 3, 16}) {
      const Tiling tiling(1, panels, 4096, threads, 16, 4);
      int64_t next = 0;
      for (int64_t t = 0; t < tiling.tasks(); ++t) {
        EXPECT_EQ(tiling.first_panel(t), next);
        EXPECT_EQ(tiling.first_panel(t) % 4, 0);
        EXPECT_LT(tiling.first_panel(t), tiling.last_panel(t));
        next = tiling.last_panel(t);
      }
      EXPECT_EQ(next, panels) << threads;
    }
  }
}

}  // namespace
}  // namespace halftone::kernels
