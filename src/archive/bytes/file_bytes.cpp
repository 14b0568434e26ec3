#include "archive/bytes/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/errors.h"

namespace halftone {
namespace {

/// Where bytes are copied, they start on a cache line, so that a kernel sees the same alignment as in a
/// mapping.
constexpr std::align_val_t kAlignment{64};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::byte* allocate(size_t size, const std::string& name) {
  try {
    return static_cast<std::byte*>(::operator new(size, kAlignment));
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::kIo, "{}: no memory for its {} bytes", name, size);
  }
}

void read_all(int fd, std::byte* data, size_t size, const std::string& path) {
  size_t done = 0;
  while (done < size) {
    const ssize_t count = ::read(fd, data + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_errno(path, "cannot be read", errno);
    if (count == 0)
      fail(ErrorCode::kIo, "{}: shrank from {} to {} bytes while it was read", path, size, done);
    done += static_cast<size_t>(count);
  }
}

}  // namespace

std::shared_ptr<FileBytes> FileBytes::open(const std::string& path, LoadMode mode, const FileLimits& limits) {
  // O_NONBLOCK: opening a pipe by mistake must fail below, not wait for a writer. It changes nothing for real
  // files.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) fail_errno(path, "cannot be opened", errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail_errno(path, "cannot be examined", errno);
  if (S_ISDIR(status.st_mode)) fail(ErrorCode::kIo, "{}: is a directory", path);
  if (!S_ISREG(status.st_mode)) fail(ErrorCode::kIo, "{}: is not a regular file", path);

  std::shared_ptr<FileBytes> file(new FileBytes);
  file->name_ = path;
  if (static_cast<size_t>(status.st_size) > limits.max_bytes)
    fail(ErrorCode::kUnsupported, "{}: has {} bytes, at most {} are read", path, status.st_size,
         limits.max_bytes);
  const size_t size = std::min(static_cast<size_t>(status.st_size), limits.first);
  if (size == 0) return file;
  if (mode == LoadMode::kRead) {
    file->data_ = allocate(size, path);
    file->size_ = size;
    read_all(fd.get(), file->data_, size, path);
    return file;
  }
  // Without MAP_NORESERVE a strict kernel would count the whole file as memory we may dirty; weights rarely
  // are.
  void* data =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd.get(), /*offset=*/0);
  if (data == MAP_FAILED) fail_errno(path, "cannot be mapped", errno);
  file->data_ = static_cast<std::byte*>(data);
  file->size_ = size;
  file->mapped_ = true;
  return file;
}

std::shared_ptr<FileBytes> FileBytes::from_memory(std::span<const std::byte> bytes, std::string name) {
  std::shared_ptr<FileBytes> file(new FileBytes);
  file->name_ = std::move(name);
  if (bytes.empty()) return file;
  file->data_ = allocate(bytes.size(), file->name_);
  file->size_ = bytes.size();
  std::memcpy(file->data_, bytes.data(), bytes.size());
  return file;
}

FileBytes::~FileBytes() {
  if (mapped_) {
    ::munmap(data_, size_);
  } else if (data_ != nullptr) {
    ::operator delete(data_, kAlignment);
  }
}

}  // namespace halftone
