// Writing safetensors: the same bytes as the Python package gives for the same tensors.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "archive/bytes/atomic_file.h"
#include "archive/safetensors/safetensors.h"
#include "archive/safetensors/safetensors_format.h"
#include "base/errors.h"

namespace halftone {
namespace {

constexpr size_t kHeaderAlignment = 8;

/// Element types by rising alignment, in the order in which the Python package compares them.
constexpr std::array kRising = {
    DType::kBool,       DType::kUint8,   DType::kInt8,   DType::kFloat8E5m2,
    DType::kFloat8E4m3, DType::kInt16,   DType::kUint16, DType::kFloat16,
    DType::kBfloat16,   DType::kInt32,   DType::kUint32, DType::kFloat32,
    DType::kComplex64,  DType::kFloat64, DType::kInt64,  DType::kUint64,
};

size_t rank_of(DType dtype) {
  return static_cast<size_t>(std::find(kRising.begin(), kRising.end(), dtype) - kRising.begin());
}

void check_tensor(const SafetensorsTensor& tensor, const std::string& path) {
  if (tensor.name == "__metadata__") {
    fail(ErrorCode::kInvalidArgument, "{}: the name \"__metadata__\" is reserved", path);
  }
  if (safetensors_name(tensor.dtype).empty()) {
    fail(ErrorCode::kInvalidArgument, "{}: tensor \"{}\": the format has no name for its element type", path,
         tensor.name);
  }
  const auto size = tensor_bytes(tensor.shape, tensor.dtype);
  if (!size || !std::cmp_equal(*size, tensor.bytes.size())) {
    fail(ErrorCode::kInvalidArgument, "{}: tensor \"{}\": {} bytes do not match its shape [{}] of {}", path,
         tensor.name, tensor.bytes.size(), fmt::join(tensor.shape, ", "), safetensors_name(tensor.dtype));
  }
}

/// `alignment` is that of the header with its length before it.
std::string make_header(std::span<const SafetensorsTensor> tensors,
                        const std::map<std::string, std::string>& metadata, size_t alignment) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::string text = header.dump();
  text.pop_back();
  // Appended as text: one ordered_json of a hundred thousand tensors would look each new key up among all
  // others.
  size_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    if (text.size() > 1) text += ',';
    text += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        nlohmann::json(tensor.name).dump(), safetensors_name(tensor.dtype),
                        fmt::join(tensor.shape, ","), offset, offset + tensor.bytes.size());
    offset += tensor.bytes.size();
  }
  text += '}';
  text.append((alignment - (kSafetensorsLengthSize + text.size()) % alignment) % alignment, ' ');
  return text;
}

void check_names(std::span<const SafetensorsTensor> tensors, const std::string& path) {
  std::unordered_set<std::string_view> names;
  for (const SafetensorsTensor& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      fail(ErrorCode::kInvalidArgument, "{}: tensor \"{}\" is given twice", path, tensor.name);
    }
  }
}

}  // namespace

std::string make_safetensors_head(const std::string& path, std::span<const SafetensorsTensor> tensors,
                                  const std::map<std::string, std::string>& metadata, size_t alignment) {
  for (const SafetensorsTensor& tensor : tensors) check_tensor(tensor, path);
  check_names(tensors, path);
  std::string header;
  try {
    header = make_header(tensors, metadata, alignment);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::kInvalidArgument, "{}: a name or metadata value is not UTF-8: {}", path, error.what());
  }
  if (header.size() > kLongestSafetensorsHeader) {
    fail(ErrorCode::kInvalidArgument, "{}: the header would have {} bytes; the format allows {}", path,
         header.size(), kLongestSafetensorsHeader);
  }
  std::string head;
  for (size_t i = 0; i < kSafetensorsLengthSize; ++i) head += static_cast<char>(header.size() >> (8 * i));
  return head += header;
}

void write_safetensors(const std::string& path, std::vector<SafetensorsTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(rank_of(b.dtype), std::string_view(a.name)) <
           std::pair(rank_of(a.dtype), std::string_view(b.name));
  });
  const std::string head = make_safetensors_head(path, tensors, metadata, kHeaderAlignment);
  AtomicFile file(path);
  file.write(head);
  for (const SafetensorsTensor& tensor : tensors) file.write(tensor.bytes);
  file.commit();
}

}  // namespace halftone
