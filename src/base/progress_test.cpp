#include "halftone/cli/progress.h"

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

TEST(Progress, NamesDoNothingToTheTerminal) {
  EXPECT_EQ(render_progress(1, 1, "a\x1b[2J\nb\xC2\x9B", 100).substr(42), "a?[2J?b?");
  EXPECT_EQ(render_progress(1, 1, "\xC3\xA4\xC3\xA4", 45).substr(42), "\xC3\xA4");  // no half character
}

}  // namespace
}  // namespace halftone
