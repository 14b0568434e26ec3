// Values of GGUF metadata: read from untrusted bytes, and looked at afterwards.
#include <algorithm>
#include <bit>
#include <utility>

#include "archive/gguf/gguf_format.h"

namespace halftone {
namespace {

constexpr std::array<std::string_view, 13> kTypeNames = {"uint8",  "int8",    "uint16", "int16",  "uint32",
                                                         "int32",  "float32", "bool",   "string", "array",
                                                         "uint64", "int64",   "float64"};

/// What the shortest element takes: the length of an empty string, type and length of an empty array.
size_t least_size(GgufValueType type) {
  if (type == GgufValueType::kString) return sizeof(uint64_t);
  if (type == GgufValueType::kArray) return sizeof(uint32_t) + sizeof(uint64_t);
  return gguf_value_size(type);
}

}  // namespace

std::string to_string(GgufValueType type) {
  const auto number = static_cast<uint32_t>(type);
  return number < kTypeNames.size() ? std::string(kTypeNames[number]) : fmt::format("type {}", number);
}

size_t gguf_value_size(GgufValueType type) {
  switch (type) {
    case GgufValueType::kUint8:
    case GgufValueType::kInt8:
    case GgufValueType::kBool:
      return 1;
    case GgufValueType::kUint16:
    case GgufValueType::kInt16:
      return 2;
    case GgufValueType::kUint32:
    case GgufValueType::kInt32:
    case GgufValueType::kFloat32:
      return 4;
    case GgufValueType::kUint64:
    case GgufValueType::kInt64:
    case GgufValueType::kFloat64:
      return 8;
    case GgufValueType::kString:
    case GgufValueType::kArray:
      break;
  }
  return 0;
}

GgufValue GgufValueReader::read(GgufValueType type, int depth) {
  if (type == GgufValueType::kArray) return read_array(depth);
  GgufValue value;
  value.type_ = value.element_ = type;
  const size_t position = in_.position();
  if (type == GgufValueType::kString) {
    const auto length = in_.read<uint64_t>("length of a string");
    if (length > kGgufLongestString) {
      fail(ErrorCode::kCorruptFile, "{}: byte {}: a string of {} bytes; at most {} are read", where_,
           position, length, kGgufLongestString);
    }
    value.content_ = in_.read_bytes(static_cast<size_t>(length), "string");
    return value;
  }
  const size_t size = gguf_value_size(type);
  if (size == 0) {
    fail(ErrorCode::kCorruptFile, "{}: byte {}: {} is no type of a value", where_, position, to_string(type));
  }
  value.content_ = in_.read_bytes(size, "value");
  if (type == GgufValueType::kBool && std::to_integer<uint8_t>(value.content_[0]) > 1) {
    fail(ErrorCode::kCorruptFile, "{}: byte {}: a bool is {}, neither 0 nor 1", where_, position,
         std::to_integer<int>(value.content_[0]));
  }
  return value;
}

GgufValue GgufValueReader::read_array(int depth) {
  const size_t position = in_.position();
  if (depth >= kGgufDeepestArray) {
    fail(ErrorCode::kCorruptFile, "{}: byte {}: arrays inside of each other, deeper than {}", where_,
         position, kGgufDeepestArray);
  }
  GgufValue array;
  array.type_ = GgufValueType::kArray;
  array.element_ = static_cast<GgufValueType>(in_.read<uint32_t>("type of an array's elements"));
  array.size_ = in_.read<uint64_t>("length of an array");
  const size_t least = least_size(array.element_);
  if (least == 0) {
    fail(ErrorCode::kCorruptFile, "{}: byte {}: an array of {}, which is no type of a value", where_,
         position, to_string(array.element_));
  }
  if (array.size_ > in_.left() / least) {
    fail(ErrorCode::kCorruptFile, "{}: byte {}: an array of {} {} does not fit into the {} bytes that follow",
         where_, position, array.size_, to_string(array.element_), in_.left());
  }
  ByteReader whole = in_;
  read_elements(array, depth);
  array.content_ = whole.read_bytes(in_.position() - whole.position(), "array");
  return array;
}

void GgufValueReader::read_elements(const GgufValue& array, int depth) {
  const bool plain = gguf_value_size(array.element_) != 0 && array.element_ != GgufValueType::kBool;
  if (plain) {  // the count was compared with the bytes that are left
    in_.read_bytes(static_cast<size_t>(array.size_) * gguf_value_size(array.element_), "array");
    return;
  }
  for (uint64_t i = 0; i < array.size_; ++i) read(array.element_, depth + 1);
}

std::string GgufValue::describe_type() const {
  if (!is_array()) return to_string(type_);
  return fmt::format("array of {} {}", size_, to_string(element_));
}

std::optional<int64_t> GgufValue::try_int() const {
  switch (type_) {
    case GgufValueType::kInt8:
      return static_cast<int8_t>(load_le<uint8_t>(content_, 0));
    case GgufValueType::kInt16:
      return static_cast<int16_t>(load_le<uint16_t>(content_, 0));
    case GgufValueType::kInt32:
      return static_cast<int32_t>(load_le<uint32_t>(content_, 0));
    case GgufValueType::kInt64:
      return static_cast<int64_t>(load_le<uint64_t>(content_, 0));
    default: {
      const auto value = try_uint();
      return value && std::in_range<int64_t>(*value) ? std::optional(static_cast<int64_t>(*value))
                                                     : std::nullopt;
    }
  }
}

std::optional<uint64_t> GgufValue::try_uint() const {
  switch (type_) {
    case GgufValueType::kUint8:
      return load_le<uint8_t>(content_, 0);
    case GgufValueType::kUint16:
      return load_le<uint16_t>(content_, 0);
    case GgufValueType::kUint32:
      return load_le<uint32_t>(content_, 0);
    case GgufValueType::kUint64:
      return load_le<uint64_t>(content_, 0);
    case GgufValueType::kInt8:
    case GgufValueType::kInt16:
    case GgufValueType::kInt32:
    case GgufValueType::kInt64: {
      const int64_t value = *try_int();
      return value >= 0 ? std::optional(static_cast<uint64_t>(value)) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> GgufValue::try_number() const {
  if (type_ == GgufValueType::kFloat32) return std::bit_cast<float>(load_le<uint32_t>(content_, 0));
  if (type_ == GgufValueType::kFloat64) return std::bit_cast<double>(load_le<uint64_t>(content_, 0));
  if (const auto value = try_int()) return static_cast<double>(*value);
  if (const auto value = try_uint()) return static_cast<double>(*value);
  return std::nullopt;
}

std::optional<bool> GgufValue::try_bool() const {
  if (type_ != GgufValueType::kBool) return std::nullopt;
  return content_[0] != std::byte{0};
}

std::optional<std::string_view> GgufValue::try_string() const {
  if (type_ != GgufValueType::kString) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(content_.data()), content_.size());
}

std::vector<GgufValue> GgufValue::elements(size_t most) const {
  std::vector<GgufValue> result;
  if (!is_array()) return result;
  const auto count = static_cast<size_t>(std::min<uint64_t>(size_, most));
  result.reserve(count);
  // Checked again: a mapped file may have been changed by another program since it was opened.
  ByteReader in(content_, "metadata of a GGUF file");
  GgufValueReader reader(in, "metadata of a GGUF file");
  for (size_t i = 0; i < count; ++i) result.push_back(reader.read(element_, /*depth=*/1));
  return result;
}

}  // namespace halftone
