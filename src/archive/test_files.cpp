#include "archive/test_files.h"

#include <span>

#include "archive/bytes/crc32.h"

namespace halftone::testing {
namespace {

uint32_t checksum(const std::string& data) {
  return crc32(std::as_bytes(std::span(data)));
}

template <typename T>
T pick(int64_t wanted, size_t right) {
  return wanted >= 0 ? static_cast<T>(wanted) : static_cast<T>(right);
}

std::string local_header(const ZipSpec& member) {
  const std::string& name = member.local_name.empty() ? member.name : member.local_name;
  const auto size =
      pick<uint32_t>(member.local_size >= 0 ? member.local_size : member.size, member.data.size());
  const auto packed =
      pick<uint32_t>(member.local_size >= 0 ? member.local_size : member.compressed_size, member.data.size());
  return "PK\x03\x04" + le<uint16_t>(20) + le(member.flags) + le(member.method) + le<uint32_t>(0) +
         le(checksum(member.data) ^ member.crc_xor) + le(packed) + le(size) +
         le(static_cast<uint16_t>(name.size())) + le(static_cast<uint16_t>(member.local_extra.size())) +
         name + member.local_extra;
}

std::string central_header(const ZipSpec& member, size_t offset) {
  return "PK\x01\x02" + le<uint16_t>(20) + le<uint16_t>(20) + le(member.flags) + le(member.method) +
         le<uint32_t>(0) + le(checksum(member.data) ^ member.crc_xor) +
         le(pick<uint32_t>(member.compressed_size, member.data.size())) +
         le(pick<uint32_t>(member.size, member.data.size())) + le(static_cast<uint16_t>(member.name.size())) +
         le(static_cast<uint16_t>(member.central_extra.size())) + le<uint16_t>(0) + le<uint16_t>(0) +
         le<uint16_t>(0) + le<uint32_t>(0) + le(pick<uint32_t>(member.offset, offset)) + member.name +
         member.central_extra;
}

std::string end64(uint64_t entries, uint64_t size, uint64_t offset, size_t position) {
  return "PK\x06\x06" + le<uint64_t>(44) + le<uint16_t>(45) + le<uint16_t>(45) + le<uint32_t>(0) +
         le<uint32_t>(0) + le(entries) + le(entries) + le(size) + le(offset) + "PK\x06\x07" +
         le<uint32_t>(0) + le<uint64_t>(position) + le<uint32_t>(1);
}

}  // namespace

std::string make_zip(const std::vector<ZipSpec>& members, const ZipEnd& end) {
  std::string file;
  std::string directory;
  for (const ZipSpec& member : members) {
    directory += central_header(member, file.size());
    file += local_header(member) + member.data + member.descriptor;
  }
  const size_t offset = file.size();
  file += directory + end.before_end;
  const auto entries = pick<uint64_t>(end.entries, members.size());
  const auto directory_size = pick<uint64_t>(end.directory_size, directory.size());
  const auto directory_offset = pick<uint64_t>(end.directory_offset, offset);
  if (end.zip64) file += end64(entries, directory_size, directory_offset, file.size());
  return file + "PK\x05\x06" + le(end.disk) + le(end.disk) + le(static_cast<uint16_t>(entries)) +
         le(static_cast<uint16_t>(entries)) + le(static_cast<uint32_t>(directory_size)) +
         le(static_cast<uint32_t>(directory_offset)) + le(static_cast<uint16_t>(end.comment.size())) +
         end.comment;
}

std::string make_torch_container(std::string_view pickle, const std::vector<std::string>& storages,
                                 std::string_view byte_order) {
  std::vector<ZipSpec> members;
  members.push_back({.name = "archive/data.pkl", .data = std::string(pickle)});
  if (!byte_order.empty()) members.push_back({.name = "archive/byteorder", .data = std::string(byte_order)});
  for (size_t i = 0; i < storages.size(); ++i) {
    members.push_back({.name = "archive/data/" + std::to_string(i), .data = storages[i]});
  }
  return make_zip(members);
}

std::string make_safetensors(std::string_view header, std::string_view data) {
  return le<uint64_t>(header.size()) + std::string(header) + std::string(data);
}

std::string gguf_string(std::string_view text) {
  return le<uint64_t>(text.size()) + std::string(text);
}

std::string gguf_entry(std::string_view key, uint32_t type, const std::string& value) {
  return gguf_string(key) + le(type) + value;
}

std::string gguf_array(uint32_t type, uint64_t count, const std::string& elements) {
  return le(type) + le(count) + elements;
}

std::string gguf_tensor(std::string_view name, const std::vector<uint64_t>& sizes, uint32_t type,
                        uint64_t offset) {
  std::string bytes = gguf_string(name) + le(static_cast<uint32_t>(sizes.size()));
  for (const uint64_t size : sizes) bytes += le(size);
  return bytes + le(type) + le(offset);
}

std::string make_gguf(const GgufSpec& spec) {
  std::string file = "GGUF" + le(spec.version) + le(pick<uint64_t>(spec.tensor_count, spec.tensors.size())) +
                     le(pick<uint64_t>(spec.entry_count, spec.entries.size()));
  for (const std::string& entry : spec.entries) file += entry;
  for (const std::string& tensor : spec.tensors) file += tensor;
  if (!spec.data.empty()) file.resize((file.size() + spec.alignment - 1) / spec.alignment * spec.alignment);
  return file + spec.data;
}

namespace op {

std::string proto() {
  return "\x80\x02";
}

std::string text(std::string_view value) {
  return "X" + le(static_cast<uint32_t>(value.size())) + std::string(value);
}

std::string integer(int32_t value) {
  return "J" + le(value);
}

std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}

std::string storage(std::string_view type, std::string_view key, int32_t count) {
  return "(" + text("storage") + global("torch", type) + text(key) + text("cpu") + integer(count) + "tQ";
}

std::string int_tuple(const std::vector<int32_t>& values) {
  std::string items = "(";
  for (const int32_t value : values) items += integer(value);
  return items + "t";
}

std::string tensor(const std::string& storage, int32_t offset, const std::string& sizes,
                   const std::string& strides) {
  return global("torch._utils", "_rebuild_tensor_v2") + "(" + storage + integer(offset) + sizes + strides +
         "\x89" + global("collections", "OrderedDict") + ")RtR";
}

}  // namespace op
}  // namespace halftone::testing
