// CRC-32 as zip uses it (reflected polynomial 0xEDB88320), sixteen bytes a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace halftone {

/// The checksum of `bytes`, continuing from `previous` (0 at the start), so that a stream can be fed in
/// pieces.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t previous = 0);

}  // namespace halftone
