// safetensors files, shards and headers that must be refused, each with its reason.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "archive/broken_case.h"
#include "archive/safetensors/safetensors.h"
#include "archive/test_files.h"
#include "base/json.h"

namespace halftone::testing {
namespace {

constexpr ErrorCode kCorrupt = ErrorCode::kCorruptFile;

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets, size_t data) {
  return make_safetensors(
      R"({"w":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
      std::string(data, 'd'));
}

std::string two(const std::string& a, const std::string& b, size_t data) {
  return make_safetensors(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
                              R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
                          std::string(data, 'd'));
}

std::string repeat(std::string_view part, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += part;
  return text;
}

std::string header(const std::string& text) {
  return make_safetensors(text, "");
}

std::vector<BrokenCase> frame_cases() {
  const std::string good = one(R"("F32")", "[2]", "[0,8]", 8);
  return {
      {"Empty", "", kCorrupt, "header length is cut off"},
      {"SevenBytes", good.substr(0, 7), kCorrupt, "header length is cut off"},
      {"LengthAlone", good.substr(0, 8), kCorrupt, "header is cut off"},
      {"HeaderCut", good.substr(0, 30), kCorrupt, "header is cut off"},
      {"DataCut", good.substr(0, good.size() - 1), kCorrupt, "past the end of the data"},
      {"DataMissing", good.substr(0, good.size() - 8), kCorrupt, "past the end of the data"},
      {"TrailingBytes", good + "xyz", kCorrupt, "3 trailing bytes"},
      {"LengthAllOnes", std::string(8, '\xff') + good, kCorrupt, "not a safetensors file?"},
      {"LengthOverLimit", le<uint64_t>(100'000'001) + good, kCorrupt, "more than 100000000"},
      {"ZipFile", make_zip({{.name = "a"}}), kCorrupt, "not a safetensors file?"},
      {"HeaderEmpty", header(""), kCorrupt, "does not start with {"},
      {"HeaderSpaceFirst", header(" {}"), kCorrupt, "does not start with {"},
      {"HeaderArray", header("[]"), kCorrupt, "does not start with {"},
      {"HeaderUnclosed", header("{"), kCorrupt, "header: byte"},
      {"HeaderTrailingText", header("{}x"), kCorrupt, "header: byte"},
      {"HeaderNotUtf8", header("{\"a\xff\":1}"), kCorrupt, "header: byte"},
      {"HeaderNul", header(std::string("{\"a\0\":1}", 8)), kCorrupt, "header: byte"},
      {"HeaderDeep", header("{\"a\":" + repeat("[", 100'000) + repeat("]", 100'000) + "}"), kCorrupt,
       "nested deeper than 3"},
      {"HeaderDeepUnclosed", header("{\"a\":" + repeat("{\"a\":", 100'000)), kCorrupt,
       "nested deeper than 3"},
      {"DuplicateTensor", header(R"({"w":1,"w":2})"), kCorrupt, "duplicate key \"w\""},
      {"DuplicateField", header(R"({"w":{"dtype":"U8","dtype":"F32"}})"), kCorrupt,
       "duplicate key \"dtype\""},
      {"MetadataNumber", header(R"({"__metadata__":{"a":1}})"), kCorrupt,
       "__metadata__.a: expected a string"},
      {"MetadataArray", header(R"({"__metadata__":[]})"), kCorrupt, "__metadata__: expected an object"},
  };
}

std::vector<BrokenCase> tensor_cases() {
  const std::string f32 = R"("F32")";
  return {
      {"EntryIsNumber", header(R"({"w":1})"), kCorrupt, "w: expected an object"},
      {"DtypeMissing", header(R"({"w":{"shape":[],"data_offsets":[0,0]}})"), kCorrupt,
       "\"dtype\" is missing"},
      {"ShapeMissing", header(R"({"w":{"dtype":"U8","data_offsets":[0,0]}})"), kCorrupt,
       "\"shape\" is missing"},
      {"OffsetsMissing", header(R"({"w":{"dtype":"U8","shape":[]}})"), kCorrupt,
       "\"data_offsets\" is missing"},
      {"DtypeUnknown", one(R"("F31")", "[2]", "[0,8]", 8), kCorrupt, "\"F31\" is no element type"},
      {"DtypeEmpty", one(R"("")", "[2]", "[0,8]", 8), kCorrupt, "is no element type"},
      {"DtypeNumber", one("32", "[2]", "[0,8]", 8), kCorrupt, "w.dtype: expected a string"},
      {"DtypeNotRead", one(R"("F4")", "[2]", "[0,1]", 1), ErrorCode::kUnsupported, "\"F4\" is not read"},
      {"DtypeWrongWidth", one(R"("F64")", "[2]", "[0,8]", 8), kCorrupt, "give 16 bytes, data_offsets 8"},
      {"ShapeObject", one(f32, "{}", "[0,4]", 4), kCorrupt, "w.shape: expected an array"},
      {"ShapeText", one(f32, R"(["2"])", "[0,8]", 8), kCorrupt, "w.shape[0]: expected an integer"},
      {"ShapeFraction", one(f32, "[2.0]", "[0,8]", 8), kCorrupt, "w.shape[0]: expected an integer"},
      {"ShapeNegative", one(f32, "[-2]", "[0,8]", 8), kCorrupt, "dimension 0 is negative"},
      {"ShapeTwoNegatives", one(f32, "[-1,-2]", "[0,8]", 8), kCorrupt, "dimension 0 is negative"},
      {"ShapePast64Bits", one(f32, "[18446744073709551618]", "[0,8]", 8), kCorrupt, "w.shape[0]"},
      {"ShapePast63Bits", one(f32, "[18446744073709551615]", "[0,8]", 8), kCorrupt, "does not fit"},
      {"ShapeProductOverflows", one(f32, "[4294967296,4294967296]", "[0,0]", 0), kCorrupt, "shape overflows"},
      {"ShapeBytesOverflow", one(f32, "[4611686018427387904]", "[0,0]", 0), kCorrupt, "shape overflows"},
      {"ShapeOverflowHiddenByZero", one(f32, "[0,4294967296,4294967296]", "[0,0]", 0), kCorrupt,
       "shape overflows"},
      {"RankMillion", one(f32, "[1" + repeat(",1", 999'999) + "]", "[0,4]", 4), kCorrupt,
       "rank 1000000 is more than 64"},
      {"OffsetsOne", one(f32, "[2]", "[0]", 8), kCorrupt, "array of two integers"},
      {"OffsetsThree", one(f32, "[2]", "[0,8,8]", 8), kCorrupt, "array of two integers"},
      {"OffsetsBackwards", one(f32, "[2]", "[8,0]", 8), kCorrupt, "[8, 0] is no range"},
      {"OffsetsNegative", one(f32, "[2]", "[-8,0]", 8), kCorrupt, "is no range"},
      {"OffsetsHuge", one(f32, "[2]", "[9223372036854775799,9223372036854775807]", 8), kCorrupt,
       "leaving a hole after 0"},
      {"OffsetsPastEnd", one(f32, "[4]", "[0,16]", 8), kCorrupt, "ends at 16, past the end of the data at 8"},
      {"RangeShorterThanShape", one(f32, "[2]", "[0,4]", 4), kCorrupt, "give 8 bytes, data_offsets 4"},
      {"HoleAtStart", one(f32, "[1]", "[4,8]", 8), kCorrupt, "leaving a hole after 0"},
      {"HoleBetween", two("[0,4]", "[8,12]", 12), kCorrupt,
       "tensor \"b\" starts at 8 of the data, leaving a hole after 4"},
      {"OverlapFull", two("[0,4]", "[0,4]", 4), kCorrupt, "overlapping the one that ends at 4"},
      {"OverlapPart", two("[0,4]", "[2,6]", 6), kCorrupt,
       "tensor \"b\" starts at 2 of the data, overlapping"},
  };
}

class BrokenSafetensors : public ::testing::TestWithParam<BrokenCase> {};

TEST_P(BrokenSafetensors, IsRefused) {
  expect_refused(GetParam(), "broken.safetensors: ", [] {
    SafetensorsFile::from_bytes(
        FileBytes::from_memory(std::as_bytes(std::span(GetParam().bytes)), "broken.safetensors"));
  });
}

INSTANTIATE_TEST_SUITE_P(Frame, BrokenSafetensors, ::testing::ValuesIn(frame_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Tensor, BrokenSafetensors, ::testing::ValuesIn(tensor_cases()), case_name);

std::vector<BrokenCase> json_cases() {
  return {
      {"Empty", "", kCorrupt, "byte"},
      {"Truncated", R"({"a": [1, 2)", kCorrupt, "byte"},
      {"TruncatedText", R"({"a)", kCorrupt, "byte"},
      {"TruncatedEscape", R"(["\u12)", kCorrupt, "byte"},
      {"LoneSurrogate", R"(["\ud800"])", kCorrupt, "byte"},
      {"BrokenUtf8", "[\"\xc3\x28\"]", kCorrupt, "byte"},
      {"OverlongUtf8", "[\"\xc0\xaf\"]", kCorrupt, "byte"},
      {"Comment", "[1 /* no */]", kCorrupt, "byte"},
      {"TrailingComma", "[1,]", kCorrupt, "byte"},
      {"BareNan", "[NaN]", kCorrupt, "byte"},
      {"Hexadecimal", "[0x10]", kCorrupt, "byte"},
      {"LeadingZero", "[01]", kCorrupt, "byte"},
      {"NumberTooBig", "[1e999]", kCorrupt, "byte"},
      {"TwoDocuments", "{} {}", kCorrupt, "byte"},
      {"Deep", repeat("[", 1'000'000), kCorrupt, "nested deeper than 128"},
      {"DeepObjects", repeat("{\"a\":", 1'000'000), kCorrupt, "nested deeper than 128"},
      {"DuplicateKeys", R"({"a": {"k": 1, "k": 2}})", kCorrupt, "duplicate key \"k\""},
      {"DuplicateByEscape", R"({"k": 1, "\u006b": 2})", kCorrupt, "duplicate key \"k\""},
      {"TooManyValues", "[" + repeat("0,", 200'000) + "0]", kCorrupt, "more than 100000 values"},
  };
}

class BrokenJson : public ::testing::TestWithParam<BrokenCase> {};

TEST_P(BrokenJson, IsRefused) {
  expect_refused(GetParam(), "broken.json: ", [] {
    parse_json(GetParam().bytes, "broken.json", {.max_values = 100'000});
  });
}

INSTANTIATE_TEST_SUITE_P(Text, BrokenJson, ::testing::ValuesIn(json_cases()), case_name);

}  // namespace
}  // namespace halftone::testing
