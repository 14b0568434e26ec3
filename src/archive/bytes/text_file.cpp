#include "archive/bytes/text_file.h"

#include "archive/bytes/atomic_file.h"
#include "archive/bytes/file_bytes.h"

namespace halftone {

std::string read_text_file(const std::string& path, size_t max_bytes) {
  const auto file = FileBytes::open(path, LoadMode::kRead, {.max_bytes = max_bytes});
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

std::string read_file_start(const std::string& path, size_t bytes) {
  const auto file = FileBytes::open(path, LoadMode::kRead, {.first = bytes});
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

void write_text_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace halftone
