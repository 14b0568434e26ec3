// Says in JSON what the readers make of a file; the oracle test compares it with what Python makes of the
// same file.
//   archive_dump list|zip|safetensors|sharded|pickle FILE
//   archive_dump rewrite IN.safetensors OUT.safetensors
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "archive/bytes/file_bytes.h"
#include "archive/pickle/pickle.h"
#include "archive/safetensors/safetensors.h"
#include "archive/zip/zip.h"
#include "base/errors.h"
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

json run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 3 && arguments[0] == "rewrite") return rewrite(arguments[1], arguments[2]);
  if (arguments.size() == 2) {
    if (arguments[0] == "list") return list_zip(arguments[1]);
    if (arguments[0] == "zip") return dump_zip(arguments[1]);
    if (arguments[0] == "safetensors") return dump_safetensors(SafetensorsFile::open(arguments[1]));
    if (arguments[0] == "sharded") return dump_safetensors(SafetensorsFile::open_sharded(arguments[1]));
    if (arguments[0] == "pickle") return dump_pickle(arguments[1]);
  }
  fail(ErrorCode::kInvalidArgument,
       "usage: archive_dump list|zip|safetensors|sharded|pickle FILE, or rewrite IN OUT");
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
