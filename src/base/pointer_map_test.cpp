#include "base/pointer_map.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace halftone {
namespace {

TEST(PointerMap, AnswersAsUnorderedMapDoes) {
  std::mt19937 dice(1);
  std::vector<char> memory(1 << 16);
  PointerMap<size_t> map;
  std::unordered_map<const void*, size_t> expected;
  for (size_t i = 0; i < 20'000; ++i) {
    const void* key = &memory[dice() % memory.size() / 16 * 16];
    if (i % 3 == 0) {
      map[key] = i;
      expected[key] = i;
    } else {
      EXPECT_EQ(map.emplace(key, i), expected.emplace(key, i).second);
    }
  }
  ASSERT_EQ(map.size(), expected.size());
  for (const char& byte : memory) {
    const auto found = expected.find(&byte);
    ASSERT_EQ(map.contains(&byte), found != expected.end());
    if (found == expected.end()) continue;
    ASSERT_EQ(map.at(&byte), found->second);
  }
}

TEST(PointerMap, AnEmptyOneHasNothing) {
  const PointerMap<int> map;
  const int some = 0;
  EXPECT_EQ(map.find(&some), nullptr);
  EXPECT_THROW(map.at(&some), std::out_of_range);
}

TEST(PointerMap, NullIsNoKey) {
  PointerMap<int> map;
  EXPECT_THROW(map.emplace(nullptr, 1), std::invalid_argument);
  map.emplace(&map, 1);
  EXPECT_FALSE(map.contains(nullptr));
}

TEST(PointerMap, KeepsItsEntriesWhenItGrows) {
  std::vector<int> keys(1'000);
  PointerMap<int> map;
  map.reserve(10);
  for (int i = 0; i < 1'000; ++i) map.emplace(&keys[static_cast<size_t>(i)], i);
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(map.at(&keys[static_cast<size_t>(i)]), i);
}

}  // namespace
}  // namespace halftone
