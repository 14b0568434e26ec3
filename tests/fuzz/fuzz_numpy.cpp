// libFuzzer target: any bytes as .npy or .npz give arrays inside the file, or no larger than deflated data
// of its size can be, or a halftone::Error.
#include "archive/bytes/inflate.h"
#include "archive/numpy/numpy.h"
#include "halftone/base/error.h"

namespace {

size_t touch(const halftone::NumpyArray& array) {
  unsigned sum = 0;
  for (const std::byte byte : array.bytes) sum += std::to_integer<unsigned>(byte);
  const auto size = halftone::tensor_bytes(array.shape, array.dtype);
  if (!size || static_cast<size_t>(*size) != array.bytes.size()) __builtin_trap();
  return array.bytes.size() + (sum & 0U);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = halftone::FileBytes::from_memory(std::as_bytes(std::span(data, size)), "fuzz.npy");
  try {
    size_t total = 0;
    if (halftone::is_zip(file->bytes())) {
      for (const halftone::NumpyArray& array : halftone::read_npz(file->bytes(), "fuzz.npz"))
        total += touch(array);
    } else {
      total = touch(halftone::read_npy(file->bytes(), "fuzz.npy"));
    }
    if (total > size * halftone::kMaxInflated) __builtin_trap();
  } catch (const halftone::Error&) {
  }
  return 0;
}
