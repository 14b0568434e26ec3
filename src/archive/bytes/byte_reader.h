// A bounds-checked little-endian cursor over the bytes of an untrusted file.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/errors.h"

namespace halftone {

/// The integer that stands at `offset`, low byte first. The caller has checked that it lies inside.
template <std::unsigned_integral T>
T load_le(std::span<const std::byte> bytes, size_t offset) {
  uint64_t value = 0;
  for (size_t i = sizeof(T); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[offset + i]);
  return static_cast<T>(value);
}

/// Reads forwards; a read past the end is kCorruptFile: "<where>: byte <position>: <what> is cut off".
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view where, size_t position = 0)
      : bytes_(bytes), where_(where), position_(position) {}

  size_t position() const { return position_; }
  size_t left() const { return position_ <= bytes_.size() ? bytes_.size() - position_ : 0; }

  template <std::unsigned_integral T>
  T read(std::string_view what) {
    need(sizeof(T), what);
    const T value = load_le<T>(bytes_, position_);
    position_ += sizeof(T);
    return value;
  }

  std::span<const std::byte> read_bytes(size_t count, std::string_view what) {
    need(count, what);
    const auto part = bytes_.subspan(position_, count);
    position_ += count;
    return part;
  }

  std::string_view read_text(size_t count, std::string_view what) {
    const auto part = read_bytes(count, what);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }

 private:
  void need(size_t count, std::string_view what) const {
    if (count > left()) fail(ErrorCode::kCorruptFile, "{}: byte {}: {} is cut off", where_, position_, what);
  }

  std::span<const std::byte> bytes_;
  std::string_view where_;
  size_t position_;
};

}  // namespace halftone
