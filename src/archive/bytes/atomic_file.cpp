#include "archive/bytes/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/errors.h"

namespace halftone {
namespace {

constexpr const char* kMark = ".tmp.";

/// Unique in the machine while this process lives; O_EXCL guards against what a dead process of the same id
/// left.
std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}{}{}.{}", path, kMark, ::getpid(), counter.fetch_add(1));
}

bool is_temporary_of(const std::string& name, const std::string& target) {
  if (!name.starts_with(target + kMark)) return false;
  const std::string_view rest = std::string_view(name).substr(target.size() + std::strlen(kMark));
  const size_t dot = rest.find('.');
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return dot != std::string_view::npos && is_number(rest.substr(0, dot)) && is_number(rest.substr(dot + 1));
}

std::filesystem::path folder_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? std::filesystem::path(".") : parent;
}

/// Whether the lock was obtained: the writer of a temporary file holds it, in whatever container or, on most
/// network file systems, on whatever machine. The kernel lets go of it when the process ends, however it
/// ends.
bool try_lock(int fd) {
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/// Removes a file that no process writes any more. If that fails, the file stays: another process may own it.
void remove_if_stale(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  // Still linked under the lock: so the name is this file's, and not one that was made since it was opened.
  struct stat status {};
  if (try_lock(fd) && ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1)
    ::unlink(path.c_str());
  ::close(fd);
}

/// Temporary files of `path` whose writers were killed.
void remove_stale(const std::string& path) {
  const std::string target = std::filesystem::path(path).filename().string();
  std::error_code error;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator entry(folder_of(path), error); !error && entry != end;
       entry.increment(error)) {
    if (is_temporary_of(entry->path().filename().string(), target)) remove_if_stale(entry->path().string());
  }
}

void sync_folder(const std::string& path) {
  const int fd = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_errno(path, "is replaced, but its folder cannot be opened", errno);
  int error = ::fsync(fd) == 0 ? 0 : errno;
  // Some network file systems cannot sync a folder and say so; the rename itself has succeeded.
  if (error == EINVAL) error = 0;
  if (::close(fd) != 0 && error == 0 && errno != EINTR) error = errno;
  if (error != 0) fail_errno(path, "is replaced, but its folder cannot be synced", error);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  // Renaming over a device or pipe would replace it.
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    fail(ErrorCode::kIo, "{}: exists and is not a regular file", path_);
  }
  remove_stale(path_);
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts && fd_ < 0; ++attempt) create();
  if (fd_ < 0) fail(ErrorCode::kIo, "{}: no free name for a temporary file beside it", path_);
}

/// Leaves fd_ negative if another name should be tried.
void AtomicFile::create() {
  temporary_ = temporary_name(path_);
  unfinished_.emplace(temporary_);
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    const int error = errno;
    temporary_.clear();
    unfinished_.reset();
    if (error != EEXIST && error != EINTR) fail_errno(path_, "cannot be created", error);
    return;
  }
  // Between creation and lock another process may have taken it for stale: then it holds the lock, or has
  // removed the file. A file system without locks never lets anybody remove anything.
  struct stat status {};
  const bool taken = !try_lock(fd_) && errno == EWOULDBLOCK;
  if (taken || (::fstat(fd_, &status) == 0 && status.st_nlink == 0)) close_and_forget();
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
    if (count == 0) fail(ErrorCode::kIo, "{}: cannot be written: the system takes no more bytes", path_);
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
  unfinished_.reset();
  note_finished_file();
  // Not before the rename: without the lock, another process might take the temporary file for stale.
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0 && errno != EINTR) fail_errno(path_, "is replaced, but cannot be closed", errno);
  sync_folder(path_);
}

void AtomicFile::close_and_forget() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
  unfinished_.reset();
}

}  // namespace halftone
