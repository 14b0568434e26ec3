// libFuzzer target: any bytes as GGUF give metadata and tensors inside of the file, or a halftone::Error.
#include "archive/gguf/gguf.h"
#include "archive/gguf/gguf_blocks.h"
#include "halftone/base/error.h"

namespace {

constexpr size_t kMostValues = 4096;

size_t walk(const halftone::GgufValue& value) {
  size_t seen = 1;
  if (const auto text = value.try_string()) {
    unsigned sum = 0;
    for (const char letter : *text) sum += static_cast<unsigned char>(letter);
    return seen + text->size() + (sum & 0U);
  }
  if (value.try_int() && !value.try_number()) __builtin_trap();
  for (const halftone::GgufValue& element : value.elements()) seen += walk(element);
  return seen;
}

void read(const halftone::GgufReader& file, const halftone::GgufTensor& tensor) {
  unsigned sum = 0;
  for (const std::byte byte : tensor.bytes) sum += std::to_integer<unsigned>(byte);
  const halftone::GgmlFormat* format = halftone::try_ggml_format(tensor.type);
  if (tensor.has_known_size != (format != nullptr)) __builtin_trap();
  const auto row = static_cast<size_t>(tensor.row_values());
  if (tensor.values == 0 || row > kMostValues) return;
  std::vector<float> values(kMostValues / row * row + (sum & 0U));
  values.resize(std::min(values.size(), static_cast<size_t>(tensor.values)));
  file.read_rows(tensor, tensor.rows() - static_cast<int64_t>(values.size() / row), values);
  if (!halftone::has_integer_blocks(format->type)) return;
  for (size_t i = 0; i < tensor.bytes.size() / format->bytes; ++i)
    halftone::read_integer_block(format->type, tensor.bytes, i);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = halftone::GgufReader::from_bytes(
        halftone::FileBytes::from_memory(std::as_bytes(std::span(data, size)), "fuzz.gguf"));
    size_t seen = 0;
    for (const halftone::GgufEntry& entry : file.metadata()) {
      seen += entry.key.size() + walk(entry.value);
      if (file.try_value(entry.key) != &entry.value) __builtin_trap();
    }
    if (seen > size) __builtin_trap();
    size_t bytes = 0;
    for (const halftone::GgufTensor& tensor : file.tensors()) {
      bytes += tensor.bytes.size();
      if (file.try_tensor(tensor.name) != &tensor) __builtin_trap();
      try {
        read(file, tensor);
      } catch (const halftone::Error& error) {
        if (error.code() != halftone::ErrorCode::kUnsupported) __builtin_trap();
      }
    }
    if (bytes > size) __builtin_trap();
  } catch (const halftone::Error&) {
  }
  return 0;
}
