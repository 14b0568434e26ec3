// Says in JSON what the readers make of a file; the oracle test compares it with what Python makes of the
// same file.
//   archive_dump list|zip|safetensors|sharded|pickle|gguf FILE
//   archive_dump rewrite IN.safetensors OUT.safetensors
#include <bit>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "archive/bytes/file_bytes.h"
#include "archive/gguf/gguf.h"
#include "archive/gguf/gguf_blocks.h"
#include "archive/pickle/pickle.h"
#include "archive/safetensors/safetensors.h"
#include "archive/zip/zip.h"
#include "base/errors.h"
#include "base/half.h"
#include "base/sha256.h"

namespace halftone {
namespace {

using json = nlohmann::ordered_json;

std::string digest(std::span<const std::byte> bytes) {
  return to_hex(sha256(bytes));
}

json list_zip(const std::string& path) {
  const auto file = FileBytes::open(path);
  const ZipReader reader(file->bytes(), path);
  json result = json::object();
  for (const ZipMember& member : reader.members()) result[member.name] = member.bytes.size();
  return result;
}

json dump_zip(const std::string& path) {
  const auto file = FileBytes::open(path);
  const ZipReader reader(file->bytes(), path);
  json result = json::object();
  for (const ZipMember& member : reader.members()) {
    reader.verify_crc(member);
    result[member.name] = {{"size", member.bytes.size()}, {"sha256", digest(member.bytes)}};
  }
  return result;
}

json dump_safetensors(const SafetensorsFile& file) {
  json tensors = json::object();
  for (const SafetensorsEntry& entry : file.entries()) {
    tensors[entry.name] = {
        {"dtype", safetensors_name(entry.dtype)}, {"shape", entry.shape}, {"sha256", digest(entry.bytes)}};
  }
  return {{"tensors", std::move(tensors)}, {"metadata", file.metadata()}};
}

json rewrite(const std::string& from, const std::string& to) {
  const SafetensorsFile file = SafetensorsFile::open(from);
  std::vector<SafetensorsTensor> tensors;
  for (const SafetensorsEntry& entry : file.entries()) {
    tensors.push_back({entry.name, entry.dtype, entry.shape, entry.bytes});
  }
  write_safetensors(to, std::move(tensors), file.metadata());
  return dump_safetensors(SafetensorsFile::open(to, LoadMode::kRead));
}

std::string_view torch_name(DType dtype) {
  constexpr std::string_view kNames[] = {"bool",          "uint8",      "int8",    "int16",     "int32",
                                         "int64",         "uint16",     "uint32",  "uint64",    "float16",
                                         "bfloat16",      "float32",    "float64", "complex64", "complex128",
                                         "float8_e4m3fn", "float8_e5m2"};
  return kNames[static_cast<size_t>(dtype)];
}

/// Walks the elements by sizes and strides, as a user of the tensor would, into row-major order.
void gather(const PickledTensor& tensor, size_t dim, int64_t index, std::string& out) {
  const size_t size = dtype_size(tensor.dtype);
  if (dim == tensor.sizes.size()) {
    out.append(reinterpret_cast<const char*>(tensor.storage.data()) + static_cast<size_t>(index) * size,
               size);
    return;
  }
  for (int64_t i = 0; i < tensor.sizes[dim]; ++i)
    gather(tensor, dim + 1, index + i * tensor.strides[dim], out);
}

struct ToJson {
  json operator()(PickleValue::None) const { return {{"none", true}}; }
  json operator()(bool value) const { return {{"bool", value}}; }
  json operator()(int64_t value) const { return {{"int", value}}; }
  json operator()(double value) const { return {{"float", fmt::format("{}", value)}}; }
  json operator()(const std::string& value) const { return {{"str", value}}; }
  json operator()(const PickledTensor& tensor) const {
    std::string bytes;
    gather(tensor, 0, tensor.offset, bytes);
    return {{"tensor", torch_name(tensor.dtype)},
            {"sizes", tensor.sizes},
            {"strides", tensor.strides},
            {"sha256", digest(std::as_bytes(std::span(bytes)))}};
  }
  json operator()(const PickleValue::Sequence& sequence) const {
    json items = json::array();
    for (const PickleValue& item : *sequence.items) items.push_back(std::visit(*this, item.data));
    return {{sequence.is_tuple ? "tuple" : "list", std::move(items)}};
  }
  json operator()(const std::shared_ptr<PickleValue::Dict>& dict) const {
    json items = json::array();
    for (const auto& [key, value] : *dict) {
      items.push_back(json::array({std::visit(*this, key.data), std::visit(*this, value.data)}));
    }
    return {{"dict", std::move(items)}};
  }
};

json dump_pickle(const std::string& path) {
  const auto file = FileBytes::open(path);
  return std::visit(ToJson(), read_torch_pickle(ZipReader(file->bytes(), path)).data);
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}

/// Strings as hexadecimal digits, because they may hold any bytes; floats as the bits of a double.
json gguf_value(const GgufValue& value) {
  if (value.is_array()) {
    json list = json::array();
    for (const GgufValue& element : value.elements()) list.push_back(gguf_value(element));
    return list;
  }
  if (const auto text = value.try_string()) return hex(*text);
  if (const auto flag = value.try_bool()) return *flag;
  if (const auto integer = value.try_int()) return *integer;
  if (const auto integer = value.try_uint()) return *integer;
  return fmt::format("{:016x}", std::bit_cast<uint64_t>(value.try_number().value()));
}

/// All NaN as one: which of them an operation gives is not promised.
std::string digest_of_floats(std::vector<float> values) {
  for (float& value : values) {
    if (std::isnan(value)) value = std::bit_cast<float>(0x7FC00000U);
  }
  return digest(std::as_bytes(std::span(values)));
}

std::vector<float> floats_of_integers(const GgufTensor& tensor) {
  std::vector<float> values;
  const auto type = static_cast<GgmlType>(tensor.type);
  const auto blocks = static_cast<size_t>(tensor.values) / GgmlIntegerBlock::kValues;
  for (size_t i = 0; i < blocks; ++i) {
    const GgmlIntegerBlock block = read_integer_block(type, tensor.bytes, i);
    for (const int8_t integer : block.integers) {
      const float product = half_to_float(block.scale) * static_cast<float>(integer);
      values.push_back(type == GgmlType::kQ4_1 ? product + half_to_float(block.minimum) : product);
    }
  }
  return values;
}

json dump_gguf(const std::string& path) {
  const GgufReader file = GgufReader::open(path);
  json metadata = json::array();
  for (const GgufEntry& entry : file.metadata())
    metadata.push_back({entry.key, entry.value.describe_type(), gguf_value(entry.value)});
  json tensors = json::array();
  for (const GgufTensor& tensor : file.tensors()) {
    json entry = {{"name", tensor.name},
                  {"type", ggml_type_text(tensor.type)},
                  {"shape", tensor.shape()},
                  {"offset", tensor.offset},
                  {"sha256", digest(tensor.bytes)}};
    const GgmlFormat* format = try_ggml_format(tensor.type);
    if (format != nullptr && format->readable) {
      std::vector<float> values(static_cast<size_t>(tensor.values));
      file.read_rows(tensor, 0, values);
      entry["floats"] = digest_of_floats(std::move(values));
    }
    if (has_integer_blocks(static_cast<GgmlType>(tensor.type)))
      entry["integers"] = digest_of_floats(floats_of_integers(tensor));
    tensors.push_back(std::move(entry));
  }
  return {{"version", file.version()},
          {"alignment", file.alignment()},
          {"metadata", std::move(metadata)},
          {"tensors", std::move(tensors)}};
}

json run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 3 && arguments[0] == "rewrite") return rewrite(arguments[1], arguments[2]);
  if (arguments.size() == 2) {
    if (arguments[0] == "list") return list_zip(arguments[1]);
    if (arguments[0] == "zip") return dump_zip(arguments[1]);
    if (arguments[0] == "safetensors") return dump_safetensors(SafetensorsFile::open(arguments[1]));
    if (arguments[0] == "sharded") return dump_safetensors(SafetensorsFile::open_sharded(arguments[1]));
    if (arguments[0] == "pickle") return dump_pickle(arguments[1]);
    if (arguments[0] == "gguf") return dump_gguf(arguments[1]);
  }
  fail(ErrorCode::kInvalidArgument,
       "usage: archive_dump list|zip|safetensors|sharded|pickle|gguf FILE, or rewrite IN OUT");
}

}  // namespace
}  // namespace halftone

int main(int argc, char** argv) {
  try {
    std::printf("%s\n", halftone::run({argv + 1, argv + argc}).dump().c_str());
    return 0;
  } catch (const halftone::Error& error) {
    std::fprintf(stderr, "%s: %s\n", std::string(to_string(error.code())).c_str(), error.what());
    return 1;
  }
}
