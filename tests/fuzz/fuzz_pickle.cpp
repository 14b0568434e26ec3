// libFuzzer target: any bytes as the pickle of a well-formed container (right checksum, three storages) give
// a value whose tensors stay inside their storages, or a halftone::Error.
#include <string>

#include "archive/bytes/file_bytes.h"
#include "archive/pickle/pickle.h"
#include "archive/test_files.h"
#include "halftone/base/error.h"

namespace {

using halftone::PickledTensor;
using halftone::PickleValue;

void touch(const PickledTensor& tensor) {
  int64_t last = tensor.offset;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] == 0) return;
    last += (tensor.sizes[i] - 1) * tensor.strides[i];
  }
  const size_t size = halftone::dtype_size(tensor.dtype);
  const volatile std::byte* end = tensor.storage.data() + (static_cast<size_t>(last) + 1) * size - 1;
  static_cast<void>(*end);  // the address sanitizer checks it
}

/// Shared branches are walked again: the reader promises that this stays affordable.
void walk(const PickleValue& value) {
  if (const auto* tensor = std::get_if<PickledTensor>(&value.data)) touch(*tensor);
  if (const auto* sequence = std::get_if<PickleValue::Sequence>(&value.data)) {
    for (const PickleValue& item : *sequence->items) walk(item);
  }
  if (const auto* dict = std::get_if<std::shared_ptr<PickleValue::Dict>>(&value.data)) {
    for (const auto& [key, item] : **dict) {
      walk(key);
      walk(item);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    std::string bytes =
        halftone::testing::make_torch_container({reinterpret_cast<const char*>(data), size},
                                                {std::string(48, 'a'), std::string(16, 'b'), std::string()});
    const auto file = halftone::FileBytes::from_memory(std::as_bytes(std::span(bytes)), "fuzz.pt");
    walk(halftone::read_torch_pickle(halftone::ZipReader(file->bytes(), file->name())));
  } catch (const halftone::Error&) {
  }
  return 0;
}
