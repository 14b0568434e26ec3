#include "halftone/base/error.h"

#include <gtest/gtest.h>

#include "base/errors.h"

namespace halftone {
namespace {

TEST(Error, FailFormatsItsMessage) {
  try {
    fail(ErrorCode::kInvalidArgument, "{} is odd", 7);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(), "7 is odd");
  }
}

TEST(Error, ContextStandsBeforeTheMessage) {
  const Error error = Error(ErrorCode::kCorruptFile, "bad magic").with_context("a.pt2");
  EXPECT_STREQ(error.what(), "a.pt2: bad magic");
  EXPECT_EQ(error.code(), ErrorCode::kCorruptFile);
}

TEST(Error, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code) {
    EXPECT_NE(to_string(static_cast<ErrorCode>(code)), "unknown error") << code;
  }
}

}  // namespace
}  // namespace halftone
