// Small containers and pickles made byte by byte, right or deliberately wrong, for tests and fuzz targets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace halftone::testing {

/// Little-endian bytes of an integer.
template <typename T>
std::string le(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
  return bytes;
}

/// One member; every field that a header repeats can be made to lie.
struct ZipSpec {
  std::string name;
  std::string data;
  uint16_t flags = 0;
  uint16_t method = 0;
  std::string local_extra;
  std::string central_extra;
  std::string local_name;  ///< `name` where empty
  std::string descriptor;  ///< after the data
  int64_t size = -1;       ///< in both headers; the data's where negative
  int64_t compressed_size = -1;
  int64_t local_size = -1;  ///< in the local header alone
  int64_t offset = -1;      ///< of the local header, as the directory says
  uint32_t crc_xor = 0;     ///< flips bits of the recorded checksum
};

/// The end of the container; negative numbers mean "what is right".
struct ZipEnd {
  bool zip64 = false;
  int64_t entries = -1;
  int64_t directory_size = -1;
  int64_t directory_offset = -1;
  uint16_t disk = 0;
  std::string comment;
  std::string before_end;  ///< bytes between directory and end record
};

std::string make_zip(const std::vector<ZipSpec>& members, const ZipEnd& end = {});

/// A torch.save container: `archive/data.pkl`, byteorder, and storages `archive/data/0`, `1`, …
std::string make_torch_container(std::string_view pickle, const std::vector<std::string>& storages,
                                 std::string_view byte_order = "little");

/// 8 bytes of length, header, data.
std::string make_safetensors(std::string_view header, std::string_view data);

/// A GGUF file of pieces; negative numbers mean "what is right".
struct GgufSpec {
  std::vector<std::string> entries;  ///< gguf_entry()
  std::vector<std::string> tensors;  ///< gguf_tensor()
  std::string data;                  ///< after the padding
  uint32_t version = 3;
  size_t alignment = 32;  ///< of `data`; says nothing in the file
  int64_t entry_count = -1;
  int64_t tensor_count = -1;
};
std::string make_gguf(const GgufSpec& spec);

/// Length and text.
std::string gguf_string(std::string_view text);
/// `type` by its number in files, `value` as bytes.
std::string gguf_entry(std::string_view key, uint32_t type, const std::string& value);
/// The value of an array entry (type 9): `elements` as bytes.
std::string gguf_array(uint32_t type, uint64_t count, const std::string& elements);
std::string gguf_tensor(std::string_view name, const std::vector<uint64_t>& sizes, uint32_t type,
                        uint64_t offset);

/// Pieces of a pickle.
namespace op {
std::string proto();                       ///< "\x80\x02"
std::string text(std::string_view value);  ///< BINUNICODE
std::string integer(int32_t value);        ///< BININT
std::string global(std::string_view module, std::string_view name);
std::string storage(std::string_view type, std::string_view key, int32_t count);  ///< … BINPERSID
std::string int_tuple(const std::vector<int32_t>& values);
/// _rebuild_tensor_v2 of the given storage expression.
std::string tensor(const std::string& storage, int32_t offset, const std::string& sizes,
                   const std::string& strides);
}  // namespace op

}  // namespace halftone::testing
