#include "archive/text_file.h"

#include "archive/atomic_file.h"
#include "archive/file_bytes.h"

namespace halftone {

std::string read_text_file(const std::string& path) {
  const auto file = FileBytes::open(path, LoadMode::kRead);
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

void write_text_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace halftone
