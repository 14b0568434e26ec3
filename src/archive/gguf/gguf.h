// GGUF files, read (hardened) without torch: versions 2 and 3, little-endian. docs/gguf.md says what is
// refused and why.
//
// Keys, names, strings and arrays are views into the file's bytes and live as long as they do. Opening walks
// over the metadata once and allocates one entry for a key and one for a tensor, whatever stands in them: a
// vocabulary of 262,144 strings costs its length fields. Nothing of the tensors' bytes is touched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/bytes/file_bytes.h"

namespace halftone {

/// The types of metadata values, by their numbers in files.
enum class GgufValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

/// "uint8", "string", "array"; "type 77" for a number that is none of them.
std::string to_string(GgufValueType type);

/// A value of the metadata, or an element of an array: a view that owns nothing. Strings may hold any bytes:
/// tokens of some vocabularies are parts of UTF-8 sequences.
class GgufValue {
 public:
  GgufValueType type() const { return type_; }
  bool is_array() const { return type_ == GgufValueType::kArray; }
  GgufValueType element_type() const { return element_; }  ///< of an array; of any other value its type
  uint64_t size() const { return size_; }                  ///< elements of an array; of any other value 1
  std::string describe_type() const;                       ///< "uint32", "array of 49152 string"

  // Nothing if the value is of another type, or if an integer does not fit.
  std::optional<int64_t> try_int() const;    ///< of every integer type
  std::optional<uint64_t> try_uint() const;  ///< the same
  std::optional<double> try_number() const;  ///< of every integer type and both float types
  std::optional<bool> try_bool() const;
  std::optional<std::string_view> try_string() const;

  /// The first elements of an array, at most `most`; none if it is no array.
  std::vector<GgufValue> elements(size_t most = SIZE_MAX) const;

 private:
  friend class GgufValueReader;
  GgufValueType type_ = GgufValueType::kUint8;
  GgufValueType element_ = GgufValueType::kUint8;
  uint64_t size_ = 1;
  std::span<const std::byte> content_;  ///< of a string its text, of an array its elements, else the number
};

struct GgufEntry {
  std::string_view key;  ///< UTF-8, not empty
  GgufValue value;
};

struct GgufTensor {
  std::string_view name;  ///< UTF-8, not empty
  uint32_t type = 0;      ///< a GgmlType (gguf_blocks.h), or a number that this version does not know
  size_t rank = 0;
  std::array<int64_t, 4> sizes{1, 1, 1, 1};  ///< as in the file: the first one varies fastest
  int64_t values = 0;                        ///< the product of the sizes
  uint64_t offset = 0;                       ///< of its first byte, in the file
  std::span<std::byte> bytes;   ///< exactly what sizes and type ask for; empty if the type is not known
  bool has_known_size = false;  ///< whether the type is known

  int64_t row_values() const { return sizes[0]; }
  int64_t rows() const { return sizes[1] * sizes[2] * sizes[3]; }
  std::vector<int64_t> shape() const;  ///< `rank` sizes, the last one varies fastest: as torch has it
};

/// One file. Immutable, so it may be read from many threads.
class GgufReader {
 public:
  /// Throws kCorruptFile for whatever breaks the format and kUnsupported for version 1, versions above 3 and
  /// big-endian files, naming the file and the place.
  static GgufReader open(const std::string& path, LoadMode mode = LoadMode::kMap);
  static GgufReader from_bytes(std::shared_ptr<FileBytes> bytes);

  const std::shared_ptr<FileBytes>& file() const { return file_; }
  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }  ///< of the tensors' offsets
  uint64_t data_offset() const {
    return data_offset_;
  }  ///< where the tensors' bytes begin; may be the file's end

  const std::vector<GgufEntry>& metadata() const { return metadata_; }  ///< in the file's order
  const GgufValue* try_value(std::string_view key) const;
  bool has(std::string_view key) const { return try_value(key) != nullptr; }

  // Each throws kCorruptFile, with file and key, if the key is missing or its value is of another type.
  int64_t get_int(std::string_view key) const;
  double get_number(std::string_view key) const;
  bool get_bool(std::string_view key) const;
  std::string_view get_string(std::string_view key) const;
  std::vector<std::string_view> get_strings(std::string_view key) const;
  std::vector<int64_t> get_ints(std::string_view key) const;
  std::vector<float> get_floats(std::string_view key) const;  ///< of an array of float32

  const std::vector<GgufTensor>& tensors() const { return tensors_; }  ///< in the file's order
  const GgufTensor* try_tensor(std::string_view name) const;

  /// The numbers of whole rows of one of these tensors, from `first_row` on, as many as fill `values`. Throws
  /// kUnsupported, with file, tensor and type, if the type is not readable; kInvalidArgument for rows that are
  /// not there.
  void read_rows(const GgufTensor& tensor, int64_t first_row, std::span<float> values) const;

 private:
  friend class GgufParser;
  const GgufValue& value_of(std::string_view key) const;
  [[noreturn]] void fail_type(std::string_view key, std::string_view expected) const;

  std::shared_ptr<FileBytes> file_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 0;
  uint64_t data_offset_ = 0;
  std::vector<GgufEntry> metadata_;
  std::vector<GgufTensor> tensors_;
  std::vector<uint32_t> by_key_;   ///< places in metadata_, in the order of the keys
  std::vector<uint32_t> by_name_;  ///< places in tensors_, in the order of the names
};

}  // namespace halftone
