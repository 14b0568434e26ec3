#include "base/nearest.h"

#include <gtest/gtest.h>

namespace halftone {
namespace {

TEST(NearestName, FindsTheNameWithTheFewestChanges) {
  EXPECT_EQ(nearest_name("int8w0", {"int4wo", "int8wo", "fp8wo"}), "int8wo");
  EXPECT_EQ(nearest_name("encoder.wieght", {"encoder.bias", "encoder.weight"}), "encoder.weight");
}

TEST(NearestName, GivesNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest_name("zebra", {"int4wo", "int8wo"}), "");
  EXPECT_EQ(nearest_name("", {"a"}), "");
  EXPECT_EQ(did_you_mean("zebra", {}), "");
}

TEST(NearestFirst, KeepsAllNamesAndTheOrderOfEqualOnes) {
  EXPECT_EQ(nearest_first("aot_eagr", {"ts", "eager", "aot_eager"}),
            (std::vector<std::string>{"aot_eager", "eager", "ts"}));
  EXPECT_EQ(nearest_first("x", {"b", "a"}), (std::vector<std::string>{"b", "a"}));
}

TEST(NearestName, SwappedNeighboursAreOneMistake) {
  EXPECT_EQ(nearest_name("rnu", {"tune", "run"}), "run");
  EXPECT_EQ(nearest_name("urn", {"run"}), "run");
  EXPECT_EQ(nearest_name("nur", {"run"}), "");  // two mistakes in three letters
}

}  // namespace
}  // namespace halftone
