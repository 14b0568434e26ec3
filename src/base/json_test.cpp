#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace halftone {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view text, const JsonLimits& limits = {}) {
  try {
    (void)parse_json(text, "a.json", limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptFile);
    return error.what();
  }
  return "no error";
}

TEST(ParseJson, ReadsWhatNlohmannReads) {
  const std::string text = R"({"a": [1, -2, 2.5, "x", null, true, {"b": {}}], "c": []})";
  EXPECT_EQ(parse_json(text, "a.json"), nlohmann::json::parse(text));
}

TEST(ParseJson, RefusesDuplicateKeys) {
  EXPECT_THAT(error_of(R"({"a": 1, "a": 2})"), HasSubstr("duplicate key \"a\""));
}

TEST(ParseJson, RefusesDepthBeyondTheLimit) {
  EXPECT_THAT(error_of(std::string(200, '[') + std::string(200, ']')), HasSubstr("deeper than 128"));
  EXPECT_EQ(error_of(std::string(128, '[') + std::string(128, ']')), "no error");
}

TEST(ParseJson, RefusesTrailingBytesBadUtf8AndTruncation) {
  EXPECT_THAT(error_of("{} {}"), HasSubstr("a.json: byte"));
  EXPECT_THAT(error_of("\"\xff\""), HasSubstr("a.json: byte"));
  EXPECT_THAT(error_of("{\"a\": [1, 2"), HasSubstr("a.json: byte"));
  EXPECT_THAT(error_of(""), HasSubstr("a.json: byte"));
}

TEST(ParseJson, RefusesMoreValuesOrBytesThanTheLimit) {
  EXPECT_THAT(error_of("[1,2,3]", {.max_values = 3}), HasSubstr("more than 3 values"));
  EXPECT_THAT(error_of("[1,2,3]", {.max_bytes = 3}), HasSubstr("limit of 3"));
}

TEST(JsonCursor, NamesThePlaceOfAWrongKind) {
  const auto document = parse_json(R"({"nodes": [{"target": 3}]})", "m.json");
  const JsonCursor root(document, "m.json");
  try {
    (void)root.at("nodes").at(0).at("target").get_string();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "m.json.nodes[0].target: expected a string, found a number");
  }
  EXPECT_THROW((void)root.at("none"), Error);
  EXPECT_THROW((void)root.at("nodes").at(1), Error);
  EXPECT_FALSE(root.has("none"));
}

TEST(JsonCursor, ReadsTheNumbersThatTorchWritesAsStrings) {
  const auto document = parse_json(R"(["Infinity", "-Infinity", "NaN", 2, "2"])", "m.json");
  const JsonCursor root(document, "m.json");
  EXPECT_EQ(root.at(0).get_double(), INFINITY);
  EXPECT_EQ(root.at(1).get_double(), -INFINITY);
  EXPECT_TRUE(std::isnan(root.at(2).get_double()));
  EXPECT_EQ(root.at(3).get_double(), 2.0);
  EXPECT_THROW((void)root.at(4).get_double(), Error);
}

TEST(JsonCursor, RefusesIntegersBeyond64SignedBits) {
  const auto document = parse_json("[18446744073709551615, 9223372036854775807, 1.0]", "m.json");
  const JsonCursor root(document, "m.json");
  EXPECT_THROW((void)root.at(0).get_int(), Error);
  EXPECT_EQ(root.at(1).get_int(), INT64_MAX);
  EXPECT_THROW((void)root.at(2).get_int(), Error);
}

}  // namespace
}  // namespace halftone
