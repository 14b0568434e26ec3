#include "halftone/progress.h"

#include <gtest/gtest.h>

namespace halftone {
namespace {

TEST(Progress, FillsTheBarInProportion) {
  EXPECT_EQ(render_progress(1, 2, "layer", 100), "[###############...............]     1/2  layer");
}

TEST(Progress, NeverExceedsTheWidthNorLeavesItsRange) {
  EXPECT_EQ(render_progress(5, 2, std::string(300, 'x'), 80).size(), 80u);
  EXPECT_EQ(render_progress(-1, 0, "", 34), "[..............................]  ");
}

}  // namespace
}  // namespace halftone
