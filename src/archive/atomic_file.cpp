#include "archive/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/errors.h"

namespace halftone {
namespace {

[[noreturn]] void fail_errno(const std::string& path, std::string_view what, int error) {
  const ErrorCode code = error == ENOENT || error == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
  fail(code, "{}: {}: {}", path, what, std::strerror(error));
}

/// Unique in the machine while this process lives; O_EXCL guards against what a dead process of the same id
/// left.
std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}.tmp.{}.{}", path, ::getpid(), counter.fetch_add(1));
}

void sync_folder(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? std::string(1, '.') : parent.string();
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_errno(folder, "cannot be opened", errno);
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // Some network file systems cannot sync a folder and say so; the rename itself has succeeded.
  if (error != 0 && error != EINVAL) fail_errno(folder, "cannot be synced", error);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  // Renaming over a device or pipe would replace it.
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    fail(ErrorCode::kIo, "{}: exists and is not a regular file", path_);
  }
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts && fd_ < 0; ++attempt) {
    temporary_ = temporary_name(path_);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EEXIST && errno != EINTR) fail_errno(path_, "cannot be created", errno);
  }
  if (fd_ < 0) fail(ErrorCode::kIo, "{}: no free name for a temporary file beside it", path_);
}

AtomicFile::~AtomicFile() {
  close_and_forget();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (fd_ < 0) fail(ErrorCode::kState, "{}: written to after commit", path_);
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_, bytes.data(), std::min(bytes.size(), size_t{1} << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_errno(path_, "cannot be written", errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

void AtomicFile::commit() {
  if (fd_ < 0) fail(ErrorCode::kState, "{}: committed twice", path_);
  if (::fsync(fd_) != 0) fail_errno(path_, "cannot be synced", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_errno(path_, "cannot be replaced", errno);
  temporary_.clear();
  close_and_forget();
  sync_folder(path_);
}

void AtomicFile::close_and_forget() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

}  // namespace halftone
