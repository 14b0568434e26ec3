// numpy files that must be refused, each with its reason, and those that must not.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "archive/broken_case.h"
#include "archive/bytes/crc32.h"
#include "archive/numpy/numpy.h"
#include "archive/test_files.h"

namespace halftone::testing {
namespace {

using ::testing::ElementsAre;

constexpr ErrorCode kNpyCorrupt = ErrorCode::kCorruptFile;
constexpr ErrorCode kNpyUnsupported = ErrorCode::kUnsupported;

std::string npy(const std::string& header, size_t data, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  bytes += version == 1 ? le(static_cast<uint16_t>(header.size())) : le(static_cast<uint32_t>(header.size()));
  return bytes + header + std::string(data, 'd');
}

std::string with(const std::string& descr, const std::string& order, const std::string& shape, size_t data) {
  return npy("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n", data);
}

std::string shaped(const std::string& shape, size_t data) {
  return with("'<f4'", "False", shape, data);
}

std::vector<BrokenCase> npy_cases() {
  const std::string good = shaped("(2, 3)", 24);
  return {
      {"Empty", "", kNpyCorrupt, "not a .npy file"},
      {"MagicAlone", good.substr(0, 6), kNpyCorrupt, "version is cut off"},
      {"LengthCut", good.substr(0, 9), kNpyCorrupt, "header length is cut off"},
      {"HeaderCut", good.substr(0, 30), kNpyCorrupt, "header is cut off"},
      {"DataCut", good.substr(0, good.size() - 1), kNpyCorrupt, "24 bytes of data, there are 23"},
      {"TrailingBytes", good + "x", kNpyCorrupt, "24 bytes of data, there are 25"},
      {"VersionNought", npy("{}", 0, 0), kNpyUnsupported, "version 0"},
      {"VersionNine", npy("{}", 0, 9), kNpyUnsupported, "version 9"},
      {"HeaderOverLimit", npy(std::string(70'000, ' '), 0, 2), kNpyCorrupt, "70000 bytes"},
      {"LengthAllOnes", std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), kNpyCorrupt, "more than 65536"},
      {"HeaderEmpty", npy("", 0), kNpyCorrupt, "expected {"},
      {"HeaderUnclosed", npy("{", 0), kNpyCorrupt, "expected a string"},
      {"HeaderTrailingCode", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }; exit()", 4),
       kNpyCorrupt, "expected the end"},
      {"CallInsteadOfLiteral", npy("__import__('os').system('true')", 0), kNpyCorrupt, "expected {"},
      {"KeyMissing", npy("{'descr': '<f4', 'shape': (), }", 4), kNpyCorrupt, "is missing"},
      {"KeyTwice", npy("{'descr': '<f4', 'descr': '<f4', 'shape': (), }", 4), kNpyCorrupt, "twice"},
      {"KeyUnknown", npy("{'order': 'C'}", 0), kNpyCorrupt, "unknown key"},
      {"StringUnclosed", npy("{'descr: 1}", 0), kNpyCorrupt, "does not end"},
      {"OrderIsANumber", with("'<f4'", "0", "(1,)", 4), kNpyCorrupt, "True or False"},
      {"Objects", with("'|O'", "False", "(1,)", 8), kNpyUnsupported, "Python objects"},
      {"Records", with("[('a', '<f4')]", "False", "(1,)", 4), kNpyUnsupported, "records"},
      {"Text", with("'<U5'", "False", "(1,)", 20), kNpyUnsupported, "numbers and bool only"},
      {"Dates", with("'<M8[ns]'", "False", "(1,)", 8), kNpyUnsupported, "numbers and bool only"},
      {"LongDouble", with("'<f16'", "False", "(1,)", 16), kNpyUnsupported, "numbers and bool only"},
      {"BigEndian", with("'>f4'", "False", "(1,)", 4), kNpyUnsupported, "big-endian"},
      {"NoByteOrder", with("'xf4'", "False", "(1,)", 4), kNpyCorrupt, "no byte order"},
      {"NoDtype", with("''", "False", "(1,)", 4), kNpyUnsupported, "numbers and bool only"},
      {"ShapeOfText", shaped("('a',)", 4), kNpyCorrupt, "expected a size"},
      {"ShapeIsANumber", shaped("4", 16), kNpyCorrupt, "expected ("},
      {"ShapeUnclosed", shaped("(2, 3", 24), kNpyCorrupt, "expected a size"},
      {"SizeNegative", shaped("(-1,)", 4), kNpyCorrupt, "expected a size"},
      {"SizeOf64Bits", shaped("(9223372036854775808,)", 4), kNpyCorrupt, "expected a size"},
      {"ShapeOverflows", shaped("(4294967296, 4294967296)", 4), kNpyCorrupt, "overflows"},
      {"ShapeOverflowsBesideZero", shaped("(0, 4294967296, 4294967296)", 0), kNpyCorrupt, "overflows"},
      {"ShapeOfAllMemory", shaped("(1099511627776,)", 4), kNpyCorrupt, "4398046511104 bytes"},
      {"RankOf65",
       shaped(
           "(" +
               [] {
                 std::string ones;
                 for (int i = 0; i < 65; ++i) ones += "1,";
                 return ones;
               }() +
               ")",
           4),
       kNpyCorrupt, "rank above 64"},
  };
}

class BrokenNpy : public ::testing::TestWithParam<BrokenCase> {};

TEST_P(BrokenNpy, IsRefused) {
  std::string bytes = GetParam().bytes;
  expect_refused(GetParam(), "x.npy", [&] { read_npy(std::as_writable_bytes(std::span(bytes)), "x.npy"); });
}

INSTANTIATE_TEST_SUITE_P(Cases, BrokenNpy, ::testing::ValuesIn(npy_cases()), case_name);

/// As numpy.savez_compressed does it.
std::string deflate_raw(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

struct DeflatedSpec {
  std::optional<std::string> packed = std::nullopt;  ///< instead of the right bytes
  int64_t size = -1;                                 ///< that the container says
  uint32_t crc_xor = 0;
};

std::string deflated_npz(const std::string& content, const DeflatedSpec& spec) {
  const std::string packed = spec.packed.value_or(deflate_raw(content));
  // make_zip() gives the checksum of the bytes that stand there.
  const uint32_t right = crc32(std::as_bytes(std::span(content))) ^ crc32(std::as_bytes(std::span(packed)));
  return make_zip({{.name = "a.npy",
                    .data = packed,
                    .method = 8,
                    .size = spec.size >= 0 ? spec.size : static_cast<int64_t>(content.size()),
                    .crc_xor = right ^ spec.crc_xor}});
}

std::vector<BrokenCase> npz_cases() {
  const std::string good = shaped("(1,)", 4);
  const std::string packed = deflate_raw(good);
  return {
      {"NotAZip", "PK\x03\x04", kNpyCorrupt, "too few"},
      {"MemberOfAModel", make_zip({{.name = "model.json", .data = "{}"}}), kNpyUnsupported, "is no array"},
      {"CompressedOtherwise", make_zip({{.name = "a.npy", .data = good, .method = 12}}), kNpyUnsupported,
       "compressed (method 12); only stored and deflated members"},
      {"DeflatedIsNot", deflated_npz(good, {.packed = std::string(80, '\xff')}), kNpyCorrupt,
       "a.npy: no deflated data: invalid block type"},
      {"DeflatedCut", deflated_npz(good, {.packed = packed.substr(0, packed.size() / 2)}), kNpyCorrupt,
       "cut off"},
      {"DeflatedEmpty", deflated_npz(good, {.packed = ""}), kNpyCorrupt, "cut off"},
      {"DeflatedTrailing", deflated_npz(good, {.packed = packed + "x"}), kNpyCorrupt, "bytes behind"},
      {"DeflatedChecksum", deflated_npz(good, {.crc_xor = 1}), kNpyCorrupt, "checksum"},
      {"DeflatedSizeLess", deflated_npz(good, {.size = static_cast<int64_t>(good.size()) - 1}), kNpyCorrupt,
       "4 bytes of data, there are 3"},
      {"DeflatedSizeMore", deflated_npz(good, {.size = static_cast<int64_t>(good.size()) + 1}), kNpyCorrupt,
       "4 bytes of data, there are 5"},
      {"DeflatedSizeAbsurd", deflated_npz(good, {.size = int64_t{1} << 31}), kNpyCorrupt, "cannot give"},
      {"DeflatedLonger", deflated_npz(good + "more", {.size = static_cast<int64_t>(good.size())}),
       kNpyCorrupt, "longer than it says"},
      {"DeflatedShorter",
       deflated_npz(good.substr(0, good.size() - 1), {.size = static_cast<int64_t>(good.size())}),
       kNpyCorrupt, "1 bytes too early"},
      // Two megabytes in the header and in the directory, four bytes in the data.
      {"DeflatedHeaderLies",
       deflated_npz(shaped("(500000,)", 4),
                    {.size = static_cast<int64_t>(shaped("(500000,)", 0).size()) + 2'000'000}),
       kNpyCorrupt, "cannot give"},
      {"DeflatedNotAnArray", deflated_npz("textual content", {}), kNpyCorrupt, "not a .npy file"},
      {"WrongChecksum", make_zip({{.name = "a.npy", .data = good, .crc_xor = 1}}), kNpyCorrupt, "checksum"},
      {"BrokenMember", make_zip({{.name = "a.npy", .data = "text"}}), kNpyCorrupt, "a.npy: not a .npy file"},
      {"NameThatLeaves", make_zip({{.name = "../a.npy", .data = good}}), kNpyCorrupt, "component"},
  };
}

class BrokenNpz : public ::testing::TestWithParam<BrokenCase> {};

TEST_P(BrokenNpz, IsRefused) {
  std::string bytes = GetParam().bytes;
  expect_refused(GetParam(), "x.npz", [&] { read_npz(std::as_writable_bytes(std::span(bytes)), "x.npz"); });
}

INSTANTIATE_TEST_SUITE_P(Cases, BrokenNpz, ::testing::ValuesIn(npz_cases()), case_name);

TEST(Npy, ReadsEveryVersionAndOrderOfKeys) {
  for (const int version : {1, 2, 3}) {
    std::string bytes = npy("{\"shape\":(2,3),'fortran_order':True,'descr':'<i8'}", 48, version);
    const NumpyArray array = read_npy(std::as_writable_bytes(std::span(bytes)), "x.npy");
    EXPECT_THAT(array.shape, ElementsAre(2, 3));
    EXPECT_EQ(array.dtype, DType::kInt64);
    EXPECT_TRUE(array.fortran_order);
    EXPECT_EQ(array.bytes.size(), 48u);
  }
}

TEST(Npz, ReadsDeflatedArrays) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{5'000'000}}) {
    std::string bytes = deflated_npz(shaped(fmt::format("({},)", count), 4 * count), {});
    const auto arrays = read_npz(std::as_writable_bytes(std::span(bytes)), "x.npz");
    ASSERT_EQ(arrays.size(), 1u);
    EXPECT_EQ(arrays[0].name, "a");
    EXPECT_THAT(arrays[0].shape, ElementsAre(static_cast<int64_t>(count)));
    ASSERT_EQ(arrays[0].bytes.size(), 4 * count);
    EXPECT_TRUE(std::all_of(arrays[0].bytes.begin(), arrays[0].bytes.end(),
                            [](std::byte byte) { return byte == std::byte{'d'}; }));
  }
}

TEST(Npy, WhatIsWrittenIsReadAgain) {
  const std::string folder = ::testing::TempDir();
  const std::vector<std::byte> data(24, std::byte{7});
  const SafetensorsTensor a{"a", DType::kFloat32, {2, 3}, data};
  const SafetensorsTensor b{"b", DType::kBool, {}, std::span(data).first(1)};
  write_npy(folder + "/a.npy", a);
  write_npz(folder + "/ab.npz", {a, b});
  const auto file = FileBytes::open(folder + "/a.npy");
  EXPECT_THAT(read_npy(file->bytes(), "a.npy").shape, ElementsAre(2, 3));
  const auto both = FileBytes::open(folder + "/ab.npz");
  const auto arrays = read_npz(both->bytes(), "ab.npz");
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[1].name, "b");
  EXPECT_EQ(arrays[1].dtype, DType::kBool);
  EXPECT_TRUE(arrays[1].shape.empty());
  const BrokenCase bfloat{"", "", kNpyUnsupported, "numpy has no dtype BF16"};
  expect_refused(bfloat, folder, [&] { write_npy(folder + "/c.npy", {"c", DType::kBfloat16, {12}, data}); });
  EXPECT_FALSE(std::filesystem::exists(folder + "/c.npy"));
}

}  // namespace
}  // namespace halftone::testing
