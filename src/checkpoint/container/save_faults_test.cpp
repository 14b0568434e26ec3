// Writing a .ht file while the n-th call of the operating system fails, for every n: the old file or the new
// one is there, whole, and nothing else. The linker's --wrap puts this program between the library and open,
// write, fsync, rename and close.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/errors.h"
#include "checkpoint/container/ht_file.h"
#include "checkpoint/container/ht_writer.h"

extern "C" {
int __real_open(const char* path, int flags, ...);
ssize_t __real_write(int fd, const void* data, size_t size);
int __real_fsync(int fd);
int __real_rename(const char* from, const char* to);
int __real_close(int fd);
}

namespace halftone {
namespace {

/// Which call fails, and how. Counts while it is armed.
struct Fault {
  bool armed = false;
  int at = 0;         ///< the number of the call that fails; the first is 1
  int error = 0;      ///< 0: a write that takes half of the bytes
  bool ever = false;  ///< all later ones too, as on a disk that stays full
  int calls = 0;
  int failed = 0;

  bool fails() {
    if (!armed) return false;
    ++calls;
    const bool now = calls == at || (ever && calls > at);
    failed += now;
    return now;
  }
};
Fault fault;

/// -1 with the error, or what the real call gives: only writes can be short.
template <typename Call>
auto faulty(Call call) -> decltype(call()) {
  if (!fault.fails() || fault.error == 0) return call();
  errno = fault.error;
  return -1;
}

}  // namespace
}  // namespace halftone

extern "C" {
// Linux lets go of the descriptor even if close() reports an error.
int __wrap_close(int fd) {
  const int result = __real_close(fd);
  return halftone::faulty([&] { return result; });
}
int __wrap_open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return halftone::faulty([&] { return __real_open(path, flags, mode); });
}
ssize_t __wrap_write(int fd, const void* data, size_t size) {
  using halftone::fault;
  if (!fault.fails()) return __real_write(fd, data, size);
  if (fault.error == 0) return __real_write(fd, data, (size + 1) / 2);
  errno = fault.error;
  return -1;
}
int __wrap_fsync(int fd) {
  return halftone::faulty([&] { return __real_fsync(fd); });
}
int __wrap_rename(const char* from, const char* to) {
  return halftone::faulty([&] { return __real_rename(from, to); });
}
}

namespace halftone {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;

size_t entries_of(const std::filesystem::path& folder) {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

struct Case {
  std::string name;
  int error;
  bool ever;
  bool stale;  ///< a killed writer has left its file
};

class SaveFaults : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / fmt::format("halftone_faults_{}", ::getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "model.ht";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Several chunks and pieces, so that a write can fail in the middle.
  void save(char content) const {
    const std::string bytes((size_t{5} << 20) + 77, content);
    write_ht(path_,
             {{"w",
               DType::kUint8,
               {static_cast<int64_t>(bytes.size())},
               std::as_bytes(std::span(bytes.data(), bytes.size()))}},
             {{ht::kKindKey, ht::kGraphKind}});
  }
  std::string file_bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_P(SaveFaults, LeaveTheOldFileOrTheNewOne) {
  save('n');
  const std::string fresh = file_bytes();
  save('o');
  const std::string old = file_bytes();
  int n = 1;
  int errors = 0;
  for (;; ++n) {
    save('o');
    if (GetParam().stale) std::ofstream(path_ + ".tmp.1.0") << "half of a file";
    const size_t descriptors = entries_of("/proc/self/fd");
    bool saved = true;
    fault = {.armed = true, .at = n, .error = GetParam().error, .ever = GetParam().ever};
    try {
      save('n');
    } catch (const Error& error) {
      fault.armed = false;
      saved = false;
      ++errors;
      EXPECT_THAT(error.code(), AnyOf(Eq(ErrorCode::kIo), Eq(ErrorCode::kNotFound))) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(path_));
      EXPECT_THAT(error.what(), HasSubstr(std::strerror(GetParam().error)));
    }
    fault.armed = false;
    ASSERT_EQ(entries_of("/proc/self/fd"), descriptors) << "call " << n;
    const std::string found = file_bytes();
    ASSERT_TRUE(found == fresh || (!saved && found == old)) << "call " << n;
    HtFile::open(path_, LoadMode::kMap).require_readable(/*verify=*/true);
    // What a killed writer left may stay where removing it failed; nothing of this save may.
    std::filesystem::remove(path_ + ".tmp.1.0");
    ASSERT_EQ(entries_of(folder_), 1u) << "call " << n;
    if (fault.failed == 0) break;
  }
  // open, six or more writes, fsync, rename, close; open, fsync and close of the folder.
  EXPECT_GE(n, 13);
  EXPECT_EQ(errors > 0, GetParam().error != 0);
  if (GetParam().error != 0 && !GetParam().stale) {
    EXPECT_EQ(errors, n - 1) << "each fault is an error";
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SaveFaults,
    ::testing::Values(Case{"FullOnce", ENOSPC, false, false}, Case{"Full", ENOSPC, true, false},
                      Case{"BrokenOnce", EIO, false, false}, Case{"Broken", EIO, true, false},
                      Case{"Short", 0, false, false}, Case{"AllShort", 0, true, false},
                      Case{"GoneOnce", ENOENT, false, false}, Case{"BrokenBesideStale", EIO, false, true}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace halftone
