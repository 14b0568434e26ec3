// The bytes of a file, mapped or read into memory, owned by reference count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace halftone {

enum class LoadMode {
  kMap,   ///< private writable mapping: pages come on first touch; a file truncated meanwhile raises SIGBUS
  kRead,  ///< one read into memory: safe against whatever happens to the file later
};

/// Bounds of what is read.
struct FileLimits {
  size_t max_bytes = SIZE_MAX;  ///< a longer file is refused
  size_t first = SIZE_MAX;      ///< of a longer file only its start is taken
};

/// Immutable in length. The bytes are writable (a private copy: the file never changes), because a tensor
/// that lives in them may be an optimizer's parameter or a mutated buffer. Code that keeps a pointer into the
/// bytes keeps the shared_ptr.
class FileBytes {
 public:
  /// Regular files only. Throws kNotFound or kIo, naming the path; kUnsupported if it is too long.
  static std::shared_ptr<FileBytes> open(const std::string& path, LoadMode mode = LoadMode::kMap,
                                         const FileLimits& limits = {});
  /// Takes a copy of bytes that come from elsewhere; `name` stands for the path in errors.
  static std::shared_ptr<FileBytes> from_memory(std::span<const std::byte> bytes, std::string name);

  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::span<std::byte> bytes() const { return {data_, size_}; }
  const std::string& name() const { return name_; }
  bool is_mapped() const { return mapped_; }

 private:
  FileBytes() = default;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;
  std::string name_;
};

}  // namespace halftone
