// Writing numpy's files: .npy as version 1.0, .npz as a container of stored members, as numpy.savez does.
#include <fmt/ranges.h>

#include <algorithm>

#include "archive/bytes/atomic_file.h"
#include "archive/bytes/crc32.h"
#include "archive/numpy/numpy.h"
#include "archive/numpy/numpy_format.h"
#include "base/errors.h"

namespace halftone {
namespace {

template <typename T>
void append_le(std::string& text, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) text += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
}

/// Everything before the data. Spaces fill it up, so that the data begin at a multiple of 64 as numpy's do.
std::string make_npy_head(const std::string& path, const SafetensorsTensor& tensor) {
  const auto found = std::find_if(numpy::kDtypes.begin(), numpy::kDtypes.end(),
                                  [&](const auto& row) { return row.first == tensor.dtype; });
  if (found == numpy::kDtypes.end())
    fail(ErrorCode::kUnsupported, "{}: numpy has no dtype {} (tensor \"{}\"): write a .safetensors file",
         path, safetensors_name(tensor.dtype), tensor.name);
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   dtype_size(tensor.dtype) == 1 ? '|' : '<', found->second,
                                   fmt::join(tensor.shape, ", "), tensor.shape.size() == 1 ? "," : "");
  const size_t before = numpy::kMagic.size() + 4;
  header.append(63 - (before + header.size()) % 64, ' ');
  header += '\n';
  std::string head(numpy::kMagic);
  head += std::string("\x01\x00", 2);
  append_le(head, static_cast<uint16_t>(header.size()));
  return head + header;
}

constexpr uint64_t kMaxZipBytes = 0xFFFFFFFE;  // without zip64

/// The fields that local and central header share, from the version to the sizes of name and extra field.
std::string shared_fields(uint32_t crc, uint32_t size, size_t name_size) {
  constexpr uint16_t kVersion = 20, kUtf8 = 0x800, kStored = 0, kTime = 0, kFirstOfJanuary1980 = 0x21;
  std::string fields;
  for (const uint16_t each : {kVersion, kUtf8, kStored, kTime, kFirstOfJanuary1980}) append_le(fields, each);
  for (const uint32_t each : {crc, size, size}) append_le(fields, each);
  append_le(fields, static_cast<uint16_t>(name_size));
  append_le(fields, uint16_t{0});
  return fields;
}

std::string end_record(size_t members, uint64_t directory_size, uint64_t offset) {
  std::string end("PK\x05\x06", 4);
  append_le(end, uint32_t{0});
  for (int i = 0; i < 2; ++i) append_le(end, static_cast<uint16_t>(members));
  append_le(end, static_cast<uint32_t>(directory_size));
  append_le(end, static_cast<uint32_t>(offset));
  append_le(end, uint16_t{0});
  return end;
}

}  // namespace

void write_npy(const std::string& path, const SafetensorsTensor& tensor) {
  const std::string head = make_npy_head(path, tensor);
  AtomicFile file(path);
  file.write(head);
  file.write(tensor.bytes);
  file.commit();
}

void write_npz(const std::string& path, const std::vector<SafetensorsTensor>& tensors) {
  uint64_t all = 0;
  for (const SafetensorsTensor& tensor : tensors) all += tensor.bytes.size() + 1024 + 2 * tensor.name.size();
  if (all > kMaxZipBytes || tensors.size() >= 0xFFFF)
    fail(ErrorCode::kUnsupported, "{}: more than 4 GB or 65534 tensors: write a .safetensors file", path);
  AtomicFile file(path);
  std::string directory;
  uint64_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    const std::string head = make_npy_head(path, tensor);
    const std::string name = tensor.name + std::string(numpy::kExtension);
    const uint32_t crc = crc32(tensor.bytes, crc32(std::as_bytes(std::span(head))));
    const std::string fields =
        shared_fields(crc, static_cast<uint32_t>(head.size() + tensor.bytes.size()), name.size());
    const std::string local = std::string("PK\x03\x04", 4) + fields + name + head;
    file.write(local);
    file.write(tensor.bytes);
    directory += std::string("PK\x01\x02\x14\x00", 6) + fields;
    directory.append(10, '\0');  // comment, disk, attributes
    append_le(directory, static_cast<uint32_t>(offset));
    directory += name;
    offset += local.size() + tensor.bytes.size();
  }
  file.write(directory);
  file.write(end_record(tensors.size(), directory.size(), offset));
  file.commit();
}

}  // namespace halftone
