// The records of a zip container: where the central directory is, its entries, and the local header of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halftone::zip {

/// [begin, end) of the central directory, and how many entries it says it has.
struct Directory {
  size_t begin = 0;
  size_t end = 0;
  uint64_t entries = 0;
};

/// One entry of the central directory with zip64 fields already applied.
struct Entry {
  std::string name;
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc32 = 0;
  uint64_t compressed_size = 0;
  uint64_t size = 0;
  uint64_t local_offset = 0;
};

/// What the member occupies in the file: [begin, end) with header and data descriptor, data at `data`.
struct Extent {
  size_t begin = 0;
  size_t data = 0;
  size_t end = 0;
};

/// General-purpose bits.
constexpr uint16_t kEncrypted = 1U << 0;
constexpr uint16_t kHasDescriptor = 1U << 3;
constexpr uint16_t kPatched = 1U << 5;
constexpr uint16_t kStrongEncryption = 1U << 6;
constexpr uint16_t kMaskedDirectory = 1U << 13;

/// All throw kCorruptFile or kUnsupported; messages start with `file`.
Directory find_directory(std::span<const std::byte> bytes, std::string_view file);
std::vector<Entry> read_entries(std::span<const std::byte> bytes, const Directory& directory,
                                std::string_view file);
/// Checks the local header against `entry`; everything must lie before `limit`.
Extent locate(std::span<const std::byte> bytes, const Entry& entry, size_t limit, std::string_view file);

}  // namespace halftone::zip
