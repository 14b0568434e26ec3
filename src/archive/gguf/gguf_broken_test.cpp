// GGUF files that must be refused, each with its reason; and that no damage to a good one does worse.
#include <gtest/gtest.h>

#include "archive/broken_case.h"
#include "archive/gguf/gguf.h"
#include "archive/gguf/gguf_blocks.h"
#include "archive/test_files.h"

namespace halftone::testing {
namespace {

constexpr ErrorCode kCorrupt = ErrorCode::kCorruptFile;
constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;

// Numbers of types in files.
constexpr uint32_t kU8 = 0, kU32 = 4, kBool = 7, kString = 8, kArray = 9, kU64 = 10;
constexpr uint32_t kF32 = 0, kQ40 = 2, kQ4K = 12;

std::string with_entry(const std::string& entry) {
  return make_gguf({.entries = {entry}});
}

std::string with_array(uint32_t type, uint64_t count, const std::string& elements) {
  return with_entry(gguf_entry("k", kArray, gguf_array(type, count, elements)));
}

std::string with_alignment(uint32_t type, const std::string& value) {
  return with_entry(gguf_entry("general.alignment", type, value));
}

std::string aligned(uint32_t alignment) {
  return with_alignment(kU32, le(alignment));
}

std::string with_tensor(const std::string& tensor, size_t data = 64) {
  return make_gguf({.tensors = {tensor}, .data = std::string(data, 'd')});
}

std::string with_tensors(const std::vector<std::string>& tensors, size_t data) {
  return make_gguf({.tensors = tensors, .data = std::string(data, 'd')});
}

std::string shaped(const std::vector<uint64_t>& sizes, uint32_t type = kF32, uint64_t offset = 0) {
  return with_tensor(gguf_tensor("t", sizes, type, offset));
}

/// Arrays inside of each other; the innermost one holds a byte.
std::string nested_arrays(int depth) {
  std::string value;
  for (int i = 1; i < depth; ++i) value += gguf_array(kArray, 1, "");
  return with_entry(gguf_entry("k", kArray, value + gguf_array(kU8, 1, "x")));
}

std::vector<BrokenCase> header_cases() {
  const std::string good = make_gguf({});
  const auto version = [](uint32_t number) { return make_gguf({.version = number}); };
  const auto counts = [](int64_t tensors, int64_t entries) {
    return make_gguf({.data = std::string(64, 'd'), .entry_count = entries, .tensor_count = tensors});
  };
  return {
      {"Empty", "", kCorrupt, "not a GGUF file: this is an empty file"},
      {"OtherFormat", "PK\x03\x04 and more", kCorrupt, "not a GGUF file: this is a zip file"},
      {"LettersOfOtherSize", "gguf" + good.substr(4), kCorrupt, "not a GGUF file"},
      {"OlderFormatOfGgml", "tjgg" + good.substr(4), kCorrupt, "not a GGUF file"},
      {"MagicCut", "GGU", kCorrupt, "not a GGUF file: this is a text file"},
      {"MagicAlone", "GGUF", kCorrupt, "byte 4: version is cut off"},
      {"VersionCut", good.substr(0, 7), kCorrupt, "byte 4: version is cut off"},
      {"TensorCountMissing", good.substr(0, 8), kCorrupt, "byte 8: number of tensors is cut off"},
      {"TensorCountCut", good.substr(0, 15), kCorrupt, "byte 8: number of tensors is cut off"},
      {"EntryCountCut", good.substr(0, 23), kCorrupt, "byte 16: number of metadata entries is cut off"},
      {"VersionNought", version(0), kUnsupported, "version 0 is not read, versions 2 and 3 are"},
      {"VersionOne", version(1), kUnsupported,
       "version 1 is not read, versions 2 and 3 are: convert the original"},
      {"VersionFour", version(4), kUnsupported, "version 4 is not read"},
      {"VersionOfAllOnes", version(UINT32_MAX), kUnsupported, "version 4294967295 is not read"},
      {"BigEndianByMagic", "FUGG" + good.substr(4), kUnsupported, "big-endian"},
      {"BigEndianByVersion", version(0x03000000), kUnsupported, "gguf-convert-endian FILE little"},
      {"TensorsMoreThanBytes", counts(4, 0), kCorrupt, "4 tensors do not fit into the 72 bytes that follow"},
      {"TensorsMoreThanRead", counts(1'000'001, 0), kCorrupt, "1000001 tensors; at most 1000000"},
      {"TensorsOfAllOnes", counts(0, 0).replace(8, 8, 8, '\xff'), kCorrupt, "18446744073709551615 tensors"},
      {"EntriesMoreThanBytes", counts(0, 6), kCorrupt, "6 metadata entries do not fit into the 72 bytes"},
      {"EntriesMoreThanRead", counts(0, 2'000'000), kCorrupt, "2000000 metadata entries; at most"},
      {"EntriesOfAllOnes", counts(0, 0).replace(16, 8, 8, '\xff'), kCorrupt, "metadata entries; at most"},
      {"EntryInThePadding", counts(0, 1), kCorrupt, "byte 24: a key is empty"},
      {"TensorInThePadding", counts(1, 0), kCorrupt, "byte 24: a tensor's name is empty"},
  };
}

std::vector<BrokenCase> metadata_cases() {
  const std::string rest(40, '\0');
  const std::string one = gguf_entry("k", kU8, "x");
  const std::string longest(65536, 'k');
  return {
      {"KeyEmpty", with_entry(gguf_entry("", kU64, "12345678")), kCorrupt, "byte 24: a key is empty"},
      {"KeyTooLong", with_entry(gguf_entry(longest, kU8, "x")), kCorrupt,
       "a key has 65536 bytes; at most 65535"},
      {"KeyLengthOfAllOnes", with_entry(std::string(8, '\xff') + rest), kCorrupt,
       "18446744073709551615 bytes"},
      {"KeyCut", with_entry(le<uint64_t>(50) + rest), kCorrupt, "byte 32: a key is cut off"},
      {"KeyNotUtf8", with_entry(gguf_entry("k\xff", kU8, "x")), kCorrupt, "a key \"k\\xff\" is not UTF-8"},
      {"KeyOverlongUtf8", with_entry(gguf_entry("\xc0\x80", kU8, "x")), kCorrupt, "is not UTF-8"},
      {"KeyTwice", make_gguf({.entries = {one, gguf_entry("l", kU8, "x"), one}}), kCorrupt,
       "metadata \"k\" stands twice"},
      {"TypeCut", make_gguf({.entries = {gguf_string("key.of.ten") + "\x04"}}), kCorrupt,
       "metadata \"key.of.ten\": byte 42: type of the value is cut off"},
      {"TypeUnknown", with_entry(gguf_entry("k", 13, "xxxx")), kCorrupt,
       "metadata \"k\": byte 37: type 13 is no type"},
      {"TypeOfAllOnes", with_entry(gguf_entry("k", UINT32_MAX, "x")), kCorrupt, "type 4294967295 is no type"},
      {"ValueCut", with_entry(gguf_entry("k", kU64, "1234567")), kCorrupt,
       "metadata \"k\": byte 37: value is cut off"},
      {"BoolIsTwo", with_entry(gguf_entry("k", kBool, "\x02")), kCorrupt, "a bool is 2, neither 0 nor 1"},
      {"StringLengthCut", with_entry(gguf_entry("k", kString, "1234")), kCorrupt,
       "length of a string is cut off"},
      {"StringCut", with_entry(gguf_entry("k", kString, le<uint64_t>(5) + "four")), kCorrupt,
       "string is cut off"},
      {"StringTooLong", with_entry(gguf_entry("k", kString, le<uint64_t>((64U << 20) + 1))), kCorrupt,
       "a string of 67108865 bytes; at most 67108864"},
      {"StringLengthOfAllOnes", with_entry(gguf_entry("k", kString, le(UINT64_MAX))), kCorrupt,
       "a string of 18446744073709551615 bytes"},
      {"ArrayHeaderCut", with_entry(gguf_entry("k", kArray, le(kU8) + "123")), kCorrupt,
       "length of an array is cut off"},
      {"ArrayOfUnknown", with_array(99, 1, "x"), kCorrupt, "an array of type 99, which is no type"},
      {"ArrayOfUnknownWithoutElements", with_array(13, 0, ""), kCorrupt,
       "an array of type 13, which is no type"},
      {"ArrayCut", with_array(kU32, 3, le(1) + le(2)), kCorrupt,
       "an array of 3 uint32 does not fit into the 8 bytes"},
      {"ArrayOfAllMemory", with_array(kU64, uint64_t{1} << 61, rest), kCorrupt, "does not fit"},
      {"ArrayLengthOfAllOnes", with_array(kU8, UINT64_MAX, rest), kCorrupt,
       "18446744073709551615 uint8 does not fit"},
      {"StringsMoreThanBytes", with_array(kString, 6, rest), kCorrupt,
       "an array of 6 string does not fit into the 40"},
      {"StringsOfBillions", with_array(kString, 1'000'000'000, rest), kCorrupt,
       "1000000000 string does not fit"},
      {"StringInArrayCut", with_array(kString, 2, gguf_string("a") + le<uint64_t>(9) + "b"), kCorrupt,
       "metadata \"k\": byte 66: string is cut off"},
      {"StringInArrayTooLong", with_array(kString, 1, le(INT64_MAX)), kCorrupt, "at most 67108864 are read"},
      {"BoolsWithASeven", with_array(kBool, 3, std::string("\x00\x01\x07", 3)), kCorrupt,
       "byte 51: a bool is 7"},
      {"ArraysMoreThanBytes", with_array(kArray, 4, rest), kCorrupt, "an array of 4 array does not fit"},
      {"ArraysTooDeep", nested_arrays(9), kCorrupt, "arrays inside of each other, deeper than 8"},
      {"ArraysMuchTooDeep", nested_arrays(100'000), kCorrupt, "arrays inside of each other, deeper than 8"},
      {"InnerArrayCut", with_array(kArray, 1, gguf_array(kU64, 2, "12345678")), kCorrupt,
       "an array of 2 uint64 does not fit into the 8 bytes"},
      {"EntryMissing", make_gguf({.entries = {one}, .data = std::string(32, '\0'), .entry_count = 2}),
       kCorrupt, "a key is empty"},
      {"AlignmentIsText", with_alignment(kString, gguf_string("32")), kCorrupt,
       "metadata \"general.alignment\" is string, expected uint32"},
      {"AlignmentOf64Bits", with_alignment(kU64, le<uint64_t>(32)), kCorrupt, "is uint64, expected uint32"},
      {"AlignmentNought", aligned(0), kCorrupt,
       "\"general.alignment\" is 0, no power of two from 8 to 1048576"},
      {"AlignmentOne", aligned(1), kCorrupt, "\"general.alignment\" is 1, no power of two"},
      {"AlignmentNoPowerOfTwo", aligned(48), kCorrupt, "is 48, no power of two"},
      {"AlignmentHuge", aligned(1U << 31), kCorrupt, "is 2147483648, no power of two"},
  };
}

std::vector<BrokenCase> tensor_cases() {
  const auto whole = [](uint64_t offset) { return gguf_tensor("u", {8}, kF32, offset); };
  const uint64_t high = uint64_t{1} << 62;
  return {
      {"NameEmpty", with_tensor(gguf_tensor("", {1}, kF32, 0)), kCorrupt,
       "byte 24: a tensor's name is empty"},
      {"NameTooLong", with_tensor(gguf_tensor(std::string(256, 'n'), {1}, kF32, 0)), kCorrupt,
       "a tensor's name has 256 bytes; at most 255"},
      {"NameNotUtf8", with_tensor(gguf_tensor("t\xed\xa0\x80", {1}, kF32, 0)), kCorrupt, "is not UTF-8"},
      {"NameCut", with_tensor(le<uint64_t>(200) + std::string(30, 'n')), kCorrupt,
       "a tensor's name is cut off"},
      {"NameTwice",
       with_tensors({gguf_tensor("t", {8}, kF32, 0), whole(32), gguf_tensor("t", {8}, kF32, 64)}, 96),
       kCorrupt, "tensor \"t\" stands twice"},
      {"FiveDimensions", shaped({1, 1, 1, 1, 1}), kCorrupt, "tensor \"t\" has 5 dimensions; at most 4"},
      {"DimensionsOfAllOnes", with_tensor(gguf_string("t") + le(UINT32_MAX), 64), kCorrupt,
       "4294967295 dimensions"},
      {"DimensionsCut",
       make_gguf({.tensors = {gguf_string("t") + le<uint32_t>(2) + le<uint64_t>(1) + "1234"}}), kCorrupt,
       "dimension of a tensor is cut off"},
      {"TypeOfTensorCut", make_gguf({.tensors = {gguf_string("tensor") + le<uint32_t>(1) + le<uint64_t>(1)}}),
       kCorrupt, "type of a tensor is cut off"},
      {"OffsetCut", make_gguf({.tensors = {gguf_tensor("t", {1}, kF32, 0).substr(0, 28)}}), kCorrupt,
       "offset of a tensor is cut off"},
      {"SizeOf64Bits", shaped({uint64_t{1} << 63}), kCorrupt, "has a dimension of 9223372036854775808"},
      {"SizeOfAllOnes", shaped({1, UINT64_MAX}), kCorrupt, "has a dimension of 18446744073709551615"},
      {"ProductOverflows", shaped({high, 4}), kCorrupt, "tensor \"t\" has sizes whose product overflows"},
      {"ProductOverflowsToASmallOne", shaped({uint64_t{1} << 32, uint64_t{1} << 32, 1, 1}), kCorrupt,
       "overflows"},
      {"ProductOverflowsBesideZero", shaped({0, high, 4}), kCorrupt, "product overflows"},
      {"ProductOfUnknownTypeOverflows", shaped({high, 4}, 999), kCorrupt, "product overflows"},
      {"BytesOverflow", shaped({high}), kCorrupt, "product overflows"},
      {"RowsNotOfWholeBlocks", shaped({33}, kQ40), kCorrupt,
       "tensor \"t\" has rows of 33 values, and Q4_0 has blocks of 32"},
      {"RowsOfHalfABlock", shaped({128, 2}, kQ4K), kCorrupt,
       "rows of 128 values, and Q4_K has blocks of 256"},
      {"ScalarInBlocks", shaped({}, kQ40), kCorrupt, "rows of 1 values, and Q4_0"},
      {"OffsetNotAligned", shaped({1}, kF32, 16), kCorrupt,
       "begins at 16 of the data, no multiple of the alignment 32"},
      {"OffsetBehindTheEnd", shaped({1}, kF32, 96), kCorrupt,
       "has 4 bytes from 96 of the data on; the data have 64"},
      {"OffsetOfAllOnes", shaped({8}, kF32, UINT64_MAX - 31), kCorrupt,
       "from 18446744073709551584 of the data on"},
      {"OffsetThatWraps", shaped({64}, kF32, UINT64_MAX - 127), kCorrupt,
       "has 256 bytes from 18446744073709551488"},
      {"OneByteTooFew", with_tensor(gguf_tensor("t", {8}, kF32, 32), 63), kCorrupt, "has 32 bytes from 32"},
      {"DataMissing", with_tensor(gguf_tensor("t", {8}, kF32, 0), 0), kCorrupt,
       "has 32 bytes from 0 of the data on"},
      {"MoreThanTheFile", shaped({uint64_t{1} << 40}), kCorrupt, "has 4398046511104 bytes from 0"},
      {"UnknownTypeBehindTheEnd", shaped({7}, 999, 96), kCorrupt, "has 0 bytes from 96 of the data on"},
      {"SameOffset", with_tensors({gguf_tensor("t", {8}, kF32, 0), whole(0)}, 64), kCorrupt, "inside of"},
      {"OverlapOfAByte", with_tensors({gguf_tensor("t", {9}, kF32, 0), whole(32)}, 64), kCorrupt,
       "tensor \"u\" begins at byte 128, inside of \"t\", which ends at 132"},
      {"OneInsideTheOther", with_tensors({gguf_tensor("t", {64}, kF32, 0), whole(64)}, 256), kCorrupt,
       "inside of \"t\""},
      {"UnknownTypeInsideAnother",
       with_tensors({gguf_tensor("t", {64}, kF32, 0), gguf_tensor("u", {1}, 999, 32)}, 256), kCorrupt,
       "tensor \"u\" begins at"},
      {"TensorMissing",
       make_gguf(
           {.tensors = {gguf_tensor("t", {1}, kF32, 0)}, .data = std::string(32, '\0'), .tensor_count = 2}),
       kCorrupt, "a tensor's name is empty"},
  };
}

class BrokenGguf : public ::testing::TestWithParam<BrokenCase> {};

TEST_P(BrokenGguf, IsRefused) {
  const std::string& bytes = GetParam().bytes;
  expect_refused(GetParam(), "x.gguf", [&] {
    GgufReader::from_bytes(FileBytes::from_memory(std::as_bytes(std::span(bytes)), "x.gguf"));
  });
}

INSTANTIATE_TEST_SUITE_P(Header, BrokenGguf, ::testing::ValuesIn(header_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Metadata, BrokenGguf, ::testing::ValuesIn(metadata_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Tensors, BrokenGguf, ::testing::ValuesIn(tensor_cases()), case_name);

std::string good_model() {
  return make_gguf({
      .entries = {gguf_entry("general.alignment", kU32, le<uint32_t>(32)),
                  gguf_entry("words", kArray, gguf_array(kString, 2, gguf_string("a") + gguf_string("bc"))),
                  gguf_entry("nested", kArray, gguf_array(kArray, 1, gguf_array(kBool, 1, "\x01")))},
      .tensors = {gguf_tensor("t", {32, 2}, kQ40, 0), gguf_tensor("u", {3}, kF32, 64)},
      .data = std::string(76, 'd'),
  });
}

/// Opens the file and reads all of it. Whether it was accepted; nothing but an Error may be thrown.
bool reads(const std::string& bytes) {
  try {
    const auto file =
        GgufReader::from_bytes(FileBytes::from_memory(std::as_bytes(std::span(bytes)), "x.gguf"));
    for (const GgufEntry& entry : file.metadata()) EXPECT_EQ(file.try_value(entry.key), &entry.value);
    for (const GgufTensor& tensor : file.tensors()) {
      std::vector<float> values(static_cast<size_t>(tensor.has_known_size ? tensor.values : 0));
      file.read_rows(tensor, 0, values);
    }
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(std::string_view(error.what()).find("x.gguf: "), 0U) << error.what();
    return false;
  }
}

TEST(GgufDamage, WhatIsJustInsideTheLimitsIsRead) {
  EXPECT_TRUE(reads(nested_arrays(8)));
  EXPECT_TRUE(reads(with_entry(gguf_entry(std::string(65535, 'k'), kU8, "x"))));
  EXPECT_TRUE(reads(with_tensor(gguf_tensor(std::string(255, 'n'), {1, 1, 1, 1}, kF32, 32), 36)));
  EXPECT_TRUE(reads(aligned(8)));
  EXPECT_TRUE(reads(aligned(1U << 20)));
  EXPECT_TRUE(reads(make_gguf({})));
  // Tensors without values own no bytes and may stand where another one does.
  EXPECT_TRUE(reads(with_tensors({gguf_tensor("t", {8}, kF32, 0), gguf_tensor("u", {0}, kF32, 0)}, 32)));
}

TEST(GgufDamage, EveryCutIsRefused) {
  const std::string good = good_model();
  ASSERT_TRUE(reads(good));
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(reads(good.substr(0, size))) << size;
}

TEST(GgufDamage, EveryChangedBitGivesNumbersOrAnError) {
  const std::string good = good_model();
  size_t refused = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1 << bit);
      refused += !reads(bad);
    }
  }
  EXPECT_GT(refused, 500U);
  EXPECT_LT(refused, good.size() * 8);
}

}  // namespace
}  // namespace halftone::testing
