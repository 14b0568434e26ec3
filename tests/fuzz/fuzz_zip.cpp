// libFuzzer target: any bytes as a zip container give a directory whose members can be read, or a
// halftone::Error.
#include "archive/bytes/file_bytes.h"
#include "archive/pickle/pickle.h"
#include "archive/zip/zip.h"
#include "halftone/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = halftone::FileBytes::from_memory(std::as_bytes(std::span(data, size)), "fuzz.zip");
    const halftone::ZipReader reader(file->bytes(), file->name());
    size_t total = 0;
    for (const halftone::ZipMember& member : reader.members()) {
      total += member.bytes.size();
      if (reader.try_member(member.name) != &member) __builtin_trap();
    }
    if (total > size) __builtin_trap();  // overlapping members were let through
    for (const halftone::ZipMember& member : reader.members()) reader.verify_crc(member);
    halftone::read_torch_pickle(reader);
  } catch (const halftone::Error&) {
  }
  return 0;
}
