// Appends rows to a CSV file under a lock, and repairs a line that a crash cut off.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "bench/results/rows_csv.h"

namespace halftone {
namespace {

/// The file, open for appending and locked against other appends; the lock ends with the object.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path) : path_(path) {
    while (!open_and_lock()) {
      // The file was replaced between open and lock, by an update: the lock is on a file without a name.
      ::close(fd_);
    }
  }
  ~LockedFile() { ::close(fd_); }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  std::string read_all() const {
    std::string text(static_cast<size_t>(size()), '\0');
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t count = ::pread(fd_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail_errno("cannot be read");
      if (count == 0) break;
      done += static_cast<size_t>(count);
    }
    text.resize(done);
    return text;
  }

  void cut(size_t size) {
    if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) fail_errno("cannot be cut");
  }

  /// One write. What is written only in part (disk full) is taken back.
  void append(std::string_view text) {
    const off_t before = size();
    ssize_t count = 0;
    do {
      count = ::write(fd_, text.data(), text.size());
    } while (count < 0 && errno == EINTR);
    if (count != static_cast<ssize_t>(text.size())) {
      const int error = count < 0 ? errno : ENOSPC;
      if (count > 0) cut(static_cast<size_t>(before));
      errno = error;
      fail_errno("cannot be written");
    }
    if (::fdatasync(fd_) != 0 && errno != EINVAL) fail_errno("cannot be synced");
  }

 private:
  bool open_and_lock() {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd_ < 0) fail_errno("cannot be opened");
    struct stat opened {};
    if (::fstat(fd_, &opened) != 0) close_and_fail("cannot be looked at");
    if (!S_ISREG(opened.st_mode)) {
      ::close(fd_);
      fail(ErrorCode::kIo, "{}: is not a regular file", path_);
    }
    while (::flock(fd_, LOCK_EX) != 0) {
      if (errno != EINTR) close_and_fail("cannot be locked");
    }
    struct stat named {};
    return ::stat(path_.c_str(), &named) == 0 && named.st_ino == opened.st_ino &&
           named.st_dev == opened.st_dev;
  }

  off_t size() const {
    struct stat status {};
    if (::fstat(fd_, &status) != 0) fail_errno("cannot be looked at");
    return status.st_size;
  }

  [[noreturn]] void close_and_fail(std::string_view what) {
    const int error = errno;
    ::close(fd_);
    errno = error;
    fail_errno(what);
  }

  [[noreturn]] void fail_errno(std::string_view what) const { halftone::fail_errno(path_, what, errno); }

  const std::string& path_;
  int fd_ = -1;
};

void check_header(const CsvRecord& header, const std::string& path) {
  const std::vector<std::string> wanted = csv_columns();
  const size_t count = std::max(wanted.size(), header.cells.size());
  for (size_t i = 0; i < count; ++i) {
    const std::string found = i < header.cells.size() ? header.cells[i].text : "";
    const std::string_view expected = i < wanted.size() ? std::string_view(wanted[i]) : "";
    if (found == expected) continue;
    fail(ErrorCode::kInvalidArgument, "{}: cannot be appended to: column {} of its header is {}, not {}",
         path, i + 1, found.empty() ? "missing" : quote_text(found),
         expected.empty() ? "there" : quote_text(expected));
  }
}

/// Makes the end of the file one that rows can follow; returns what must stand between.
std::string mend(LockedFile& file, const std::string& text, const std::string& path,
                 std::vector<std::string>& notes) {
  const std::string header = csv_header();
  if (text.empty()) return header;
  if (text.size() < header.size() && header.starts_with(text)) {
    notes.push_back(cut_line_note(path, text, "written again"));
    file.cut(0);
    return header;
  }
  const CsvDocument document = parse_csv(text, path);
  check_header(document.records.front(), path);
  if (document.ended) return {};
  if (document.records.size() == 1 || is_whole_record(document)) {
    // A person's editor left out the last line end, or a crash did after the last cell. Half of a "\r\n" is
    // taken off.
    if (text.ends_with('\r')) file.cut(text.size() - 1);
    return "\n";
  }
  const size_t begin = document.records.back().begin;
  notes.push_back(cut_line_note(path, std::string_view(text).substr(begin), "removed"));
  file.cut(begin);
  return {};
}

}  // namespace

std::vector<std::string> append_bench_csv(const std::string& path, std::span<const BenchRow> rows) {
  const std::string lines = csv_lines(rows);  // refuses bad rows before the file is touched
  std::vector<std::string> notes;
  LockedFile file(path);
  const std::string text = file.read_all();
  const std::string between = mend(file, text, path, notes);
  file.append(between + lines);
  return notes;
}

}  // namespace halftone
