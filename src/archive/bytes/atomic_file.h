// Writing a file so that a reader, or a machine that lost power, sees the old one or the new one, never a
// part.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "archive/bytes/unfinished.h"

namespace halftone {

/// Usage: construct, write() as often as needed, commit(). Destroyed without commit(), it leaves no trace.
/// Every failure is kIo (kNotFound if the folder is missing) and names the path. Not thread-safe.
class AtomicFile {
 public:
  /// Creates a temporary file beside `path`, `path`.tmp.PROCESS.NUMBER, with the permissions that the
  /// process's umask gives, and locks it (flock). Those of the same path whose writers were killed are
  /// removed: no process holds their lock any more.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// fsync, rename over `path`, fsync of the folder. At most once; no write() after it.
  void commit();

 private:
  void create();
  void close_and_forget() noexcept;

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  std::optional<Unfinished> unfinished_;
};

}  // namespace halftone
