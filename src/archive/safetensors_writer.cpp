// Writing safetensors: the same bytes as the Python package gives for the same tensors.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "archive/atomic_file.h"
#include "archive/safetensors.h"
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

std::string make_header(const std::vector<SafetensorsTensor>& tensors,
                        const std::map<std::string, std::string>& metadata) {
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
  text.append((kHeaderAlignment - text.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::string& path, std::vector<SafetensorsTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  for (const SafetensorsTensor& tensor : tensors) check_tensor(tensor, path);
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].name == tensors[i - 1].name) {
      fail(ErrorCode::kInvalidArgument, "{}: tensor \"{}\" is given twice", path, tensors[i].name);
    }
  }
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return rank_of(a.dtype) > rank_of(b.dtype); });
  std::string header;
  try {
    header = make_header(tensors, metadata);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::kInvalidArgument, "{}: a name or metadata value is not UTF-8: {}", path, error.what());
  }
  std::array<std::byte, 8> length{};
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<std::byte>(header.size() >> (8 * i));

  AtomicFile file(path);
  file.write(length);
  file.write(header);
  for (const SafetensorsTensor& tensor : tensors) file.write(tensor.bytes);
  file.commit();
}

}  // namespace halftone
