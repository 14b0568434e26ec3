#include "halftone/cli/message.h"

#include <gtest/gtest.h>

namespace halftone {
namespace {

TEST(BoundedMessage, ShortOnesStayAsTheyAre) {
  EXPECT_EQ(bounded_message(""), "");
  EXPECT_EQ(bounded_message("a name: é\n\tand more"), "a name: é\n\tand more");
  EXPECT_EQ(bounded_message(std::string(kLongestMessage, 'x')), std::string(kLongestMessage, 'x'));
}

TEST(BoundedMessage, ControlCharactersAreSpelledOut) {
  EXPECT_EQ(bounded_message("\x1b[2J\r\x7f"), "\\x1b[2J\\x0d\\x7f");
}

TEST(BoundedMessage, LongOnesAreCutBetweenCharacters) {
  const std::string cut = bounded_message(std::string(50'000'000, 'x'));
  EXPECT_LT(cut.size(), kLongestMessage + 100);
  EXPECT_TRUE(cut.ends_with("… (49996000 more bytes)")) << cut.substr(kLongestMessage);
  for (size_t before = 0; before < 4; ++before) {
    std::string text(before, 'x');
    while (text.size() < 2 * kLongestMessage) text += "漢";
    const std::string wide = bounded_message(text);
    const size_t kept = wide.find("… (");
    ASSERT_NE(kept, std::string::npos);
    EXPECT_EQ((kept - before) % 3, 0U) << before;
    EXPECT_TRUE(text.starts_with(wide.substr(0, kept)));
  }
}

}  // namespace
}  // namespace halftone
