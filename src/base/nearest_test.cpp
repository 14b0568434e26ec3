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

}  // namespace
}  // namespace halftone
