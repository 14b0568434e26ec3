// libFuzzer target: any bytes as safetensors give tensors that tile the file, or a halftone::Error.
#include "archive/safetensors/safetensors.h"
#include "halftone/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = halftone::SafetensorsFile::from_bytes(
        halftone::FileBytes::from_memory(std::as_bytes(std::span(data, size)), "fuzz.safetensors"));
    size_t total = 0;
    for (const halftone::SafetensorsEntry& entry : file.entries()) {
      unsigned sum = 0;
      for (const std::byte byte : entry.bytes) sum += std::to_integer<unsigned>(byte);
      total += entry.bytes.size() + (sum & 0U);
      if (file.try_entry(entry.name) != &entry) __builtin_trap();
    }
    if (total > size) __builtin_trap();
  } catch (const halftone::Error&) {
  }
  return 0;
}
