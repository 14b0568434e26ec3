#include "base/checked.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>

namespace halftone {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Checked, AddsUnlessItOverflows) {
  EXPECT_EQ(checked_add<int64_t>(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add<int64_t>(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_add<uint8_t>(200, 56), std::nullopt);
}

TEST(Checked, SubtractsUnlessItOverflows) {
  EXPECT_EQ(checked_sub<uint64_t>(3, 3), 0u);
  EXPECT_EQ(checked_sub<uint64_t>(3, 4), std::nullopt);
}

TEST(Checked, MultipliesUnlessItOverflows) {
  EXPECT_EQ(checked_mul<int64_t>(1 << 20, 1 << 20), int64_t{1} << 40);
  EXPECT_EQ(checked_mul<int64_t>(kMax, 2), std::nullopt);
}

TEST(Checked, ProductOfNothingIsOne) {
  EXPECT_EQ(checked_product<int64_t>({}), 1);
  EXPECT_EQ(checked_product<int64_t>(std::array<int64_t, 3>{2, 3, 5}), 30);
  EXPECT_EQ(checked_product<int64_t>(std::array<int64_t, 3>{kMax, 2, 0}), std::nullopt);
}

TEST(Checked, CastsUnlessTheValueDoesNotFit) {
  EXPECT_EQ((checked_cast<uint8_t, int>(255)), 255);
  EXPECT_EQ((checked_cast<uint8_t, int>(256)), std::nullopt);
  EXPECT_EQ((checked_cast<uint64_t, int>(-1)), std::nullopt);
}

}  // namespace
}  // namespace halftone
