// Zip containers that must be refused, each with its reason.
#include <gtest/gtest.h>

#include "archive/broken_case.h"
#include "archive/bytes/file_bytes.h"
#include "archive/test_files.h"
#include "archive/zip/zip.h"

namespace halftone::testing {
namespace {

constexpr ErrorCode kCorrupt = ErrorCode::kCorruptFile;
constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;
constexpr int64_t kMax32 = 0xFFFFFFFF;

std::string good() {
  return make_zip({{.name = "m/a", .data = "first"}, {.name = "m/b", .data = "second"}});
}

std::string cut(size_t length) {
  return good().substr(0, length);
}

std::string named(const std::string& name) {
  return make_zip({{.name = name, .data = "x"}});
}

std::string patched(size_t at, const std::string& bytes) {
  return good().replace(at, bytes.size(), bytes);
}

std::string descriptor(uint32_t crc, uint32_t packed, uint32_t size) {
  return "PK\x07\x08" + le(crc) + le(packed) + le(size);
}

std::vector<BrokenCase> whole_file_cases() {
  const size_t size = good().size();
  std::vector<BrokenCase> cases = {
      {"Empty", "", kCorrupt, "too few"},
      {"OneByte", "P", kCorrupt, "too few"},
      {"WrongMagic", std::string(100, 'x'), kCorrupt, "no end-of-directory record"},
      {"ElfFile",
       "\x7f"
       "ELF" +
           std::string(200, '\0'),
       kCorrupt, "no end-of-directory record"},
      {"TrailingByte", good() + "x", kCorrupt, "no end-of-directory record"},
      {"PrefixedBytes", "prefix" + good(), kCorrupt, "does not end at its end record"},
      {"CommentLongerThanFile", patched(size - 2, le<uint16_t>(100)), kCorrupt, "no end-of-directory record"},
      {"EntryCountTooBig", make_zip({{.name = "a"}}, {.entries = 60000}), kCorrupt, "do not fit a directory"},
      {"EntryCountTooSmall", make_zip({{.name = "a"}, {.name = "b"}}, {.entries = 1}), kCorrupt,
       "after the last of 1"},
      {"DirectorySizeTooBig", make_zip({{.name = "a"}}, {.directory_size = 5000}), kCorrupt,
       "does not end at"},
      {"DirectorySizeAllOnes", make_zip({{.name = "a"}}, {.directory_size = kMax32}), kCorrupt,
       "does not end at"},
      {"DirectoryOffsetPastEnd", make_zip({{.name = "a"}}, {.directory_offset = 1 << 30}), kCorrupt,
       "does not end at"},
      {"GapBeforeEnd", make_zip({{.name = "a"}}, {.before_end = "gap"}), kCorrupt, "does not end at"},
      {"SecondDisk", make_zip({{.name = "a"}}, {.disk = 1}), kUnsupported, "multi-disk"},
      {"BadEntryMagic", patched(good().find("PK\x01\x02"), "QK"), kCorrupt, "no directory entry"},
      {"BadLocalMagic", patched(0, "QK"), kCorrupt, "no local header at byte 0"},
  };
  for (const size_t length :
       {size - 1, size - 10, size - 21, size - 22, size - 40, size / 2, size_t{30}, size_t{4}}) {
    cases.push_back(
        {"CutAt" + std::to_string(length), cut(length), kCorrupt, length < 22 ? "too few" : "no end-of"});
  }
  return cases;
}

std::vector<BrokenCase> member_cases() {
  const std::string extra64 = le<uint16_t>(1) + le<uint16_t>(16);
  const std::string huge = extra64 + le(~uint64_t{0}) + le(~uint64_t{0});
  return {
      {"DotDotName", named("../etc/passwd"), kCorrupt, "\"..\" component"},
      {"DotDotInside", named("m/../../x"), kCorrupt, "\"..\" component"},
      {"DotDotLast", named("m/.."), kCorrupt, "\"..\" component"},
      {"DotComponent", named("./m"), kCorrupt, "\".\" component"},
      {"AbsoluteName", named("/etc/passwd"), kCorrupt, "absolute path"},
      {"BackslashName", named("..\\x"), kCorrupt, "backslash"},
      {"NulInName", named(std::string("a\0b", 3)), kCorrupt, "control character"},
      {"NewlineInName", named("a\nb"), kCorrupt, "control character"},
      {"EmptyName", named(""), kCorrupt, "is empty"},
      {"EmptyComponent", named("a//b"), kCorrupt, "empty component"},
      {"NameNotUtf8", named("a\xff"), kCorrupt, "not UTF-8"},
      {"DirectoryWithData", named("m/"), kCorrupt, "directory entry"},
      {"DuplicateName", make_zip({{.name = "a"}, {.name = "b"}, {.name = "a"}}), kCorrupt,
       "\"a\" is there twice"},
      {"Deflated", make_zip({{.name = "a", .data = "x", .method = 8}}), kUnsupported,
       "compressed (method 8)"},
      {"UnknownMethod", make_zip({{.name = "a", .data = "x", .method = 99}}), kUnsupported,
       "compressed (method 99)"},
      {"CompressedBomb", make_zip({{.name = "a", .data = "x", .method = 8, .size = 0xFFFFFFF0}}),
       kUnsupported, "compressed"},
      {"StoredBomb", make_zip({{.name = "a", .data = "x", .size = 0xFFFFFFF0, .compressed_size = 1}}),
       kCorrupt, "sizes differ"},
      {"HugeStored", make_zip({{.name = "a", .size = 0x7FFFFFFF, .compressed_size = 0x7FFFFFFF}}), kCorrupt,
       "reach past"},
      {"Encrypted", make_zip({{.name = "a", .flags = 1}}), kUnsupported, "encrypted"},
      {"StronglyEncrypted", make_zip({{.name = "a", .flags = 1U << 6}}), kUnsupported, "encrypted"},
      {"MaskedDirectory", make_zip({{.name = "a", .flags = 1U << 13}}), kUnsupported, "encrypted"},
      {"OffsetPastEnd", make_zip({{.name = "a", .offset = 1 << 20}}), kCorrupt, "starts at byte 1048576"},
      {"OffsetInsideData", make_zip({{.name = "a", .data = "xxxx", .offset = 3}}), kCorrupt,
       "no local header at byte 3"},
      {"LocalNameDiffers", make_zip({{.name = "a", .local_name = "b"}}), kCorrupt,
       "local header names \"b\""},
      {"LocalSizeDiffers", make_zip({{.name = "a", .data = "xyz", .local_size = 2}}), kCorrupt,
       "2 bytes in its local header"},
      {"OverlappingMembers",
       make_zip({{.name = "a", .data = make_zip({{.name = "b", .data = "x"}}), .size = -1},
                 {.name = "b", .data = "x", .offset = 31}}),
       kCorrupt, "overlap at byte 31"},
      {"SameMemberTwice", make_zip({{.name = "a", .data = "x"}, {.name = "a", .data = "x", .offset = 0}}),
       kCorrupt, "overlap"},
      {"ExtraFieldCutOff", make_zip({{.name = "a", .central_extra = le<uint16_t>(9) + le<uint16_t>(50)}}),
       kCorrupt, "extra field is cut off"},
      {"LocalExtraCutOff", make_zip({{.name = "a", .local_extra = le<uint16_t>(9) + le<uint16_t>(50)}}),
       kCorrupt, "extra field is cut off"},
      {"Zip64FieldMissing", make_zip({{.name = "a", .size = kMax32, .compressed_size = kMax32}}), kCorrupt,
       "zip64 extra field is cut off"},
      {"Zip64FieldShort",
       make_zip({{.name = "a",
                  .central_extra = le<uint16_t>(1) + le<uint16_t>(4) + le<uint32_t>(0),
                  .size = kMax32}}),
       kCorrupt, "zip64 extra field is cut off"},
      {"Zip64SizeOverflows",
       make_zip({{.name = "a",
                  .local_extra = huge,
                  .central_extra = huge,
                  .size = kMax32,
                  .compressed_size = kMax32}}),
       kCorrupt, "18446744073709551615 bytes"},
      {"DescriptorMissing", make_zip({{.name = "a", .data = "x", .flags = 8}}), kCorrupt,
       "no data descriptor"},
      {"DescriptorLies",
       make_zip({{.name = "a", .data = "x", .flags = 8, .descriptor = descriptor(1, 2, 3)}}), kCorrupt,
       "no data descriptor"},
  };
}

std::vector<BrokenCase> zip64_cases() {
  const std::string base = make_zip({{.name = "a", .data = "x"}}, {.zip64 = true});
  const size_t end64 = base.find("PK\x06\x06");
  const size_t locator = base.find("PK\x06\x07");
  const auto with = [&](size_t at, const std::string& bytes) {
    return std::string(base).replace(at, bytes.size(), bytes);
  };
  return {
      {"Zip64EndMagic", with(end64, "QQ"), kCorrupt, "no zip64 end record"},
      {"Zip64LocatorOffsetHuge", with(locator + 8, le(~uint64_t{0})), kCorrupt, "past its locator"},
      {"Zip64LocatorTwoDisks", with(locator + 16, le<uint32_t>(2)), kUnsupported, "spans 2 disks"},
      {"Zip64RecordSizeHuge", with(end64 + 4, le(~uint64_t{0})), kCorrupt, "does not reach its locator"},
      {"Zip64CountDisagrees", with(end64 + 32, le<uint64_t>(7)), kCorrupt,
       "entry count is 1 in the end record but 7"},
      {"Zip64OffsetDisagrees", with(end64 + 48, le<uint64_t>(7)), kCorrupt, "directory offset is"},
      {"Zip64DiskDisagrees", with(end64 + 16, le<uint32_t>(7)), kCorrupt, "disk number is 0"},
  };
}

class BrokenZip : public ::testing::TestWithParam<BrokenCase> {};

TEST_P(BrokenZip, IsRefused) {
  expect_refused(GetParam(), "broken.zip: ", [] {
    const auto file = FileBytes::from_memory(std::as_bytes(std::span(GetParam().bytes)), "broken.zip");
    ZipReader reader(file->bytes(), file->name());
  });
}

INSTANTIATE_TEST_SUITE_P(File, BrokenZip, ::testing::ValuesIn(whole_file_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Member, BrokenZip, ::testing::ValuesIn(member_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Zip64, BrokenZip, ::testing::ValuesIn(zip64_cases()), case_name);

}  // namespace
}  // namespace halftone::testing
