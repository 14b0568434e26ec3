// The small parts of the component on good input; broken input and the comparison with Python have their own
// files.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "archive/bytes/atomic_file.h"
#include "archive/bytes/crc32.h"
#include "archive/bytes/file_bytes.h"
#include "archive/bytes/text.h"
#include "archive/bytes/text_file.h"
#include "archive/bytes/unfinished.h"
#include "archive/safetensors/safetensors.h"
#include "archive/test_files.h"
#include "archive/zip/zip.h"
#include "halftone/base/error.h"
#include "halftone/cli/interrupt.h"

namespace halftone::testing {
namespace {

namespace fs = std::filesystem;

class Folder : public ::testing::Test {
 protected:
  Folder() {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() override { fs::remove_all(path_); }

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(path_), {})); }

 private:
  fs::path path_ = fs::temp_directory_path() / ("halftone_archive_" + std::to_string(::getpid()));
};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

template <typename F>
ErrorCode code_of(F call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kInternal;
}

using FileBytesTest = Folder;

TEST_F(FileBytesTest, MappedAndReadGiveTheSameBytes) {
  write("f", "hello");
  for (const LoadMode mode : {LoadMode::kMap, LoadMode::kRead}) {
    const auto file = FileBytes::open(path("f"), mode);
    EXPECT_EQ(file->is_mapped(), mode == LoadMode::kMap);
    EXPECT_EQ(std::memcmp(file->bytes().data(), "hello", 5), 0);
    EXPECT_EQ(file->bytes().size(), 5U);
    EXPECT_EQ(file->name(), path("f"));
  }
}

TEST_F(FileBytesTest, WritesStayPrivate) {
  write("f", "hello");
  const auto file = FileBytes::open(path("f"));
  file->bytes()[0] = std::byte{'J'};
  EXPECT_EQ(read("f"), "hello");
  EXPECT_EQ(FileBytes::open(path("f"))->bytes()[0], std::byte{'h'});
}

TEST_F(FileBytesTest, EmptyFileHasNoBytes) {
  write("f", "");
  EXPECT_TRUE(FileBytes::open(path("f"), LoadMode::kMap)->bytes().empty());
  EXPECT_TRUE(FileBytes::open(path("f"), LoadMode::kRead)->bytes().empty());
  EXPECT_TRUE(FileBytes::from_memory({}, "m")->bytes().empty());
}

TEST_F(FileBytesTest, RefusesWhatIsNoFile) {
  EXPECT_EQ(code_of([&] { FileBytes::open(path("none")); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { FileBytes::open(path("")); }), ErrorCode::kIo);
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { FileBytes::open(path("pipe")); }), ErrorCode::kIo);
}

TEST_F(FileBytesTest, TextFilesAreRegularAndBounded) {
  write("f", "0123456789");
  EXPECT_EQ(read_text_file(path("f")), "0123456789");
  EXPECT_EQ(read_text_file(path("f"), 10), "0123456789");
  EXPECT_EQ(code_of([&] { read_text_file(path("f"), 9); }), ErrorCode::kUnsupported);
  EXPECT_EQ(read_file_start(path("f"), 3), "012");
  EXPECT_EQ(read_file_start(path("f"), 300), "0123456789");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& no_file :
       {path("pipe"), path(""), std::string("/dev/zero"), std::string("/dev/null")}) {
    EXPECT_EQ(code_of([&] { read_text_file(no_file); }), ErrorCode::kIo) << no_file;
    EXPECT_EQ(code_of([&] { read_file_start(no_file, 16); }), ErrorCode::kIo) << no_file;
  }
  // Sparse: it takes no disk space and would take all memory.
  write("huge", "x");
  std::filesystem::resize_file(path("huge"), uint64_t{1} << 40);
  EXPECT_EQ(code_of([&] { read_text_file(path("huge")); }), ErrorCode::kUnsupported);
  EXPECT_EQ(read_file_start(path("huge"), 1), "x");
}

TEST_F(FileBytesTest, AnInterruptRemovesWhatIsUnfinishedAndKeepsWhatIsFinished) {
  const auto interrupted = [&](bool finish) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(STDERR_FILENO);
      end_on_interrupt();
      AtomicFile file(path("out"));
      file.write("half");
      if (finish) file.commit();
      ::raise(SIGINT);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(interrupted(false), 130);
  EXPECT_EQ(files(), 0U);
  EXPECT_EQ(interrupted(true), 130);
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(read("out"), "half");
}

TEST_F(FileBytesTest, AnInterruptRemovesFoldersWhoseFilesWereNamedBeforeThem) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);
    end_on_interrupt();
    // The slot of one that is gone is used again, before that of the folder.
    auto gone = std::make_unique<Unfinished>(path("gone"));
    const Unfinished folder(path("folder"));
    gone.reset();
    const Unfinished file(path("folder/file"));
    std::filesystem::create_directory(path("folder"));
    write("folder/file", "half");
    ::raise(SIGINT);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 130);
  EXPECT_FALSE(std::filesystem::exists(path("folder")));
}

TEST(Crc32, KnownValues) {
  EXPECT_EQ(crc32(bytes_of("")), 0U);
  EXPECT_EQ(crc32(bytes_of("123456789")), 0xCBF43926U);
  EXPECT_EQ(crc32(bytes_of("The quick brown fox jumps over the lazy dog")), 0x414FA339U);
}

TEST(Crc32, PiecesGiveTheWhole) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32(bytes_of(text.substr(cut)), crc32(bytes_of(text.substr(0, cut)))), crc32(bytes_of(text)));
  }
}

TEST(Text, TellsUtf8FromOtherBytes) {
  for (const char* good : {"", "a", "é", "漢", "😀", "\xf4\x8f\xbf\xbf", "\xee\x80\x80"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad : {"\x80", "\xc3", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe6\xbc",
                          "a\xc3"
                          "b"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
  }
}

TEST(Text, QuotesForMessages) {
  EXPECT_EQ(quote_text("a/b"), "\"a/b\"");
  EXPECT_EQ(quote_text("a\n\x7f\xff"), "\"a\\x0a\\x7f\\xff\"");
  EXPECT_EQ(quote_text("漢"), "\"漢\"");
  EXPECT_LT(quote_text(std::string(100'000, 'x')).size(), 210U);
}

TEST(DTypes, NamesAndBytes) {
  for (const char* name : {"BOOL", "U8", "I8", "I16", "I32", "I64", "U16", "U32", "U64", "F16", "BF16", "F32",
                           "F64", "C64", "F8_E4M3", "F8_E5M2"}) {
    const auto dtype = dtype_from_safetensors(name);
    ASSERT_TRUE(dtype) << name;
    EXPECT_EQ(safetensors_name(*dtype), name);
  }
  EXPECT_FALSE(dtype_from_safetensors(""));
  EXPECT_EQ(dtype_size(DType::kComplex128), 16U);
  EXPECT_EQ(tensor_bytes(std::vector<int64_t>{2, 3}, DType::kFloat64), 48);
  EXPECT_EQ(tensor_bytes({}, DType::kBfloat16), 2);
  EXPECT_EQ(tensor_bytes(std::vector<int64_t>{4, 0}, DType::kFloat32), 0);
  EXPECT_EQ(tensor_bytes(std::vector<int64_t>{-1, -1}, DType::kFloat32), std::nullopt);
  EXPECT_EQ(tensor_bytes(std::vector<int64_t>{int64_t{1} << 61, 4}, DType::kBool), std::nullopt);
}

TEST(Zip, ReadsPaddingDescriptorsAndComments) {
  const std::string padding = "FB" + le<uint16_t>(5) + "ZZZZZ";
  const std::string crc = le(crc32(bytes_of("data")));
  const std::string size32 = le<uint32_t>(4);
  const std::string size64 = le<uint64_t>(4);
  const std::vector<std::string> descriptors = {"PK\x07\x08" + crc + size32 + size32, crc + size32 + size32,
                                                "PK\x07\x08" + crc + size64 + size64, crc + size64 + size64};
  for (const std::string& descriptor : descriptors) {
    for (const bool zip64 : {false, true}) {
      auto bytes = make_zip(
          {{.name = "m/x", .data = "data", .flags = 8, .local_extra = padding, .descriptor = descriptor},
           {.name = "m/", .data = ""}},
          {.zip64 = zip64, .comment = "PK\x05\x06 in a comment"});
      const ZipReader reader(std::as_writable_bytes(std::span(bytes)), "good.zip");
      ASSERT_EQ(reader.members().size(), 2U);
      const ZipMember& member = reader.member("m/x");
      EXPECT_EQ(std::memcmp(member.bytes.data(), "data", 4), 0);
      reader.verify_crc(member);
      EXPECT_EQ(reader.try_member("m/y"), nullptr);
      EXPECT_EQ(code_of([&] { reader.member("m/y"); }), ErrorCode::kCorruptFile);
    }
  }
}

TEST(Zip, FindsChangedBytes) {
  auto bytes = make_zip({{.name = "m/x", .data = "data"}});
  bytes[bytes.find("data")] ^= 1;
  const ZipReader reader(std::as_writable_bytes(std::span(bytes)), "changed.zip");
  EXPECT_EQ(code_of([&] { reader.verify_crc(reader.member("m/x")); }), ErrorCode::kCorruptFile);
}

using AtomicFileTest = Folder;

TEST_F(AtomicFileTest, ReplacesOnlyOnCommit) {
  write("f", "old");
  {
    AtomicFile file(path("f"));
    file.write("half");
    EXPECT_EQ(read("f"), "old");
  }
  EXPECT_EQ(read("f"), "old");
  EXPECT_EQ(files(), 1U) << "the abandoned temporary file is left";
  AtomicFile file(path("f"));
  file.write("n");
  file.write("ew");
  file.commit();
  EXPECT_EQ(read("f"), "new");
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(code_of([&] { file.write("x"); }), ErrorCode::kState);
  EXPECT_EQ(code_of([&] { file.commit(); }), ErrorCode::kState);
}

TEST_F(AtomicFileTest, PermissionsFollowTheUmask) {
  const mode_t before = ::umask(027);
  AtomicFile file(path("f"));
  ::umask(before);
  file.commit();
  struct stat status {};
  ASSERT_EQ(::stat(path("f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST_F(AtomicFileTest, RemovesWhatKilledWritersLeftAndNothingElse) {
  write("f.tmp.123.0", "of a process that was killed");
  for (const char* other : {"g.tmp.123.0", "f.tmp.notes", "f.tmp.1", "f.tmp.1.x", "f.tmp", "f.tmp.1.2.3"})
    write(other, "not ours");
  ASSERT_EQ(::mkfifo(path("f.tmp.5.5").c_str(), 0600), 0);
  AtomicFile first(path("f"));
  EXPECT_FALSE(std::filesystem::exists(path("f.tmp.123.0")));
  first.write("first");
  AtomicFile second(path("f"));  // leaves the first writer's file alone: it is being written
  second.write("second");
  second.commit();
  EXPECT_EQ(read("f"), "second");
  first.commit();
  EXPECT_EQ(read("f"), "first");
  EXPECT_EQ(files(), 8U);
}

TEST_F(AtomicFileTest, RefusesFoldersAndDevices) {
  EXPECT_EQ(code_of([&] { AtomicFile file(path("none/f")); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { AtomicFile file(path("")); }), ErrorCode::kIo);
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { AtomicFile file(path("pipe")); }), ErrorCode::kIo);
  EXPECT_EQ(files(), 1U);
}

using SafetensorsTest = Folder;

TEST_F(SafetensorsTest, RoundTrip) {
  const std::string data = "0123456789abcdef";
  write_safetensors(path("f"),
                    {{"b", DType::kUint8, {3}, bytes_of(data).first(3)},
                     {"a", DType::kFloat64, {2, 1}, bytes_of(data)},
                     {"c", DType::kFloat32, {0}, {}},
                     {"d", DType::kBfloat16, {}, bytes_of(data).first(2)}},
                    {{"key", "value"}});
  const SafetensorsFile file = SafetensorsFile::open(path("f"));
  ASSERT_EQ(file.entries().size(), 4U);
  const SafetensorsEntry* entry = file.try_entry("a");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->dtype, DType::kFloat64);
  EXPECT_EQ(entry->shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(std::memcmp(entry->bytes.data(), data.data(), 16), 0);
  EXPECT_EQ(file.try_entry("e"), nullptr);
  EXPECT_EQ(file.metadata().at("key"), "value");
  for (const SafetensorsEntry& each : file.entries()) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(each.bytes.data()) % dtype_size(each.dtype), 0U) << each.name;
  }
}

TEST_F(SafetensorsTest, EntriesKeepTheBytesAlive) {
  const std::string data = "12345678";
  write_safetensors(path("f"), {{"w", DType::kUint8, {8}, bytes_of(data)}});
  const SafetensorsEntry entry = SafetensorsFile::open(path("f")).entries().front();
  EXPECT_EQ(std::memcmp(entry.bytes.data(), data.data(), 8), 0);
}

TEST_F(SafetensorsTest, WriterRefusesWrongArguments) {
  const std::string data = "12345678";
  const auto write_one = [&](const SafetensorsTensor& tensor) {
    return code_of([&] { write_safetensors(path("f"), {tensor}); });
  };
  EXPECT_EQ(write_one({"w", DType::kFloat32, {3}, bytes_of(data)}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(write_one({"w", DType::kFloat32, {-1, -2}, bytes_of(data)}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(write_one({"__metadata__", DType::kUint8, {8}, bytes_of(data)}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(write_one({"w", DType::kComplex128, {0}, {}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(write_one({"\xff", DType::kUint8, {8}, bytes_of(data)}), ErrorCode::kInvalidArgument);
  const SafetensorsTensor good{"w", DType::kUint8, {8}, bytes_of(data)};
  EXPECT_EQ(code_of([&] { write_safetensors(path("f"), {good, good}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { write_safetensors(path("none/f"), {good}); }), ErrorCode::kNotFound);
  EXPECT_EQ(files(), 0U);
}

TEST_F(SafetensorsTest, ShardsAreRefusedOutsideTheFolder) {
  const std::string data = "12345678";
  write_safetensors(path("s.safetensors"), {{"w", DType::kUint8, {8}, bytes_of(data)}});
  const auto open = [&](const std::string& index) {
    write("i.json", index);
    return SafetensorsFile::open_sharded(path("i.json"));
  };
  EXPECT_EQ(open(R"({"weight_map":{"w":"s.safetensors"}})").entries().size(), 1U);
  for (const char* bad : {R"({"weight_map":{"w":"../s.safetensors"}})",
                          R"({"weight_map":{"w":"/etc/passwd"}})", R"({"weight_map":{"w":""}})",
                          R"({"weight_map":{"w":".."}})", R"({"weight_map":{"v":"s.safetensors"}})",
                          R"({"weight_map":{"w":1}})", R"({"weight_map":[]})", R"({})", R"([])", ""}) {
    EXPECT_EQ(code_of([&] { open(bad); }), ErrorCode::kCorruptFile) << bad;
  }
  EXPECT_EQ(code_of([&] { open(R"({"weight_map":{"w":"gone.safetensors"}})"); }), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace halftone::testing
