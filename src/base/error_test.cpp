#include "halftone/base/error.h"

#include <gtest/gtest.h>

#include "base/errors.h"

namespace halftone {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return make_error(ErrorCode::kInvalidArgument, "{} is odd", value);
  return value / 2;
}

TEST(Result, HoldsAValue) {
  EXPECT_TRUE(half(8).ok());
  EXPECT_EQ(half(8).value(), 4);
}

TEST(Result, ValueThrowsTheErrorThatItHolds) {
  const auto result = half(7);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THROW((void)result.value(), Error);
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
