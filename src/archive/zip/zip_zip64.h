// The zip64 extra field: 64-bit values for header fields that hold all ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace halftone::zip {

constexpr uint64_t kMax16 = 0xFFFF;
constexpr uint64_t kMax32 = 0xFFFFFFFF;

/// Replaces those of `fields` (in the order of the format: size, compressed size, local offset; null if
/// the header has no such field) and `disk` that are saturated. Throws kCorruptFile if the extra fields
/// are malformed, or a value is saturated and no zip64 field says what it is.
void apply_zip64_extra(std::span<const std::byte> extra, std::array<uint64_t*, 3> fields, uint64_t* disk,
                       std::string_view where);

}  // namespace halftone::zip
