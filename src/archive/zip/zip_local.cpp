// Local headers, zip64 extra fields and data descriptors: what stands next to a member's data.
#include <algorithm>

#include "archive/bytes/byte_reader.h"
#include "archive/bytes/text.h"
#include "archive/zip/zip_records.h"
#include "archive/zip/zip_zip64.h"
#include "base/checked.h"

namespace halftone::zip {
namespace {

constexpr uint32_t kLocalMagic = 0x04034b50;
constexpr uint32_t kDescriptorMagic = 0x08074b50;
constexpr uint16_t kZip64Id = 1;
constexpr size_t kLocalSize = 30;

/// The payload of the zip64 field, empty if there is none. Walks all fields, so that a malformed one is
/// found.
std::span<const std::byte> find_zip64(std::span<const std::byte> extra, std::string_view where) {
  ByteReader reader(extra, where);
  std::span<const std::byte> payload;
  // Fewer than four bytes cannot be a field; some writers pad with them.
  while (reader.left() >= 4) {
    const auto id = reader.read<uint16_t>("extra field");
    const auto size = reader.read<uint16_t>("extra field");
    const auto content = reader.read_bytes(size, "extra field");
    if (id == kZip64Id && payload.empty()) payload = content;
  }
  return payload;
}

/// Length of a data descriptor that says what `entry` says, 0 if none does. The format leaves open whether
/// it starts with a signature and whether its sizes have 32 or 64 bits.
size_t descriptor_length(std::span<const std::byte> rest, const Entry& entry) {
  for (const bool wide : {false, true}) {
    for (const bool signature : {true, false}) {
      const size_t start = signature ? 4 : 0;
      const size_t length = start + (wide ? 20 : 12);
      if (rest.size() < length) continue;
      if (signature && load_le<uint32_t>(rest, 0) != kDescriptorMagic) continue;
      if (load_le<uint32_t>(rest, start) != entry.crc32) continue;
      const uint64_t packed = wide ? load_le<uint64_t>(rest, start + 4) : load_le<uint32_t>(rest, start + 4);
      const uint64_t size = wide ? load_le<uint64_t>(rest, start + 12) : load_le<uint32_t>(rest, start + 8);
      if (packed == entry.compressed_size && size == entry.size) return length;
    }
  }
  return 0;
}

struct LocalHeader {
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc32 = 0;
  uint64_t compressed_size = 0;
  uint64_t size = 0;
  std::string_view name;
  size_t data = 0;
};

LocalHeader read_local(std::span<const std::byte> bytes, size_t at, const std::string& where) {
  ByteReader reader(bytes, where, at);
  if (reader.left() < kLocalSize || reader.read<uint32_t>("local header") != kLocalMagic) {
    fail(ErrorCode::kCorruptFile, "{}: no local header at byte {}", where, at);
  }
  LocalHeader header;
  reader.read_bytes(2, "version");
  header.flags = reader.read<uint16_t>("flags");
  header.method = reader.read<uint16_t>("method");
  reader.read_bytes(4, "time");
  header.crc32 = reader.read<uint32_t>("checksum");
  header.compressed_size = reader.read<uint32_t>("size");
  header.size = reader.read<uint32_t>("size");
  const auto name_length = reader.read<uint16_t>("name length");
  const auto extra_length = reader.read<uint16_t>("extra length");
  header.name = reader.read_text(name_length, "name of the local header");
  const auto extra = reader.read_bytes(extra_length, "extra field of the local header");
  header.data = reader.position();
  apply_zip64_extra(extra, {&header.size, &header.compressed_size, nullptr}, nullptr, where);
  return header;
}

/// A streaming writer leaves checksum and sizes zero here and gives them in the descriptor.
void check_agreement(const LocalHeader& header, const Entry& entry, const std::string& where) {
  constexpr uint16_t kCompared = kEncrypted | kHasDescriptor;
  if (header.name != entry.name) {
    fail(ErrorCode::kCorruptFile, "{}: its local header names {}", where, quote_text(header.name));
  }
  if (header.method != entry.method || (header.flags & kCompared) != (entry.flags & kCompared)) {
    fail(ErrorCode::kCorruptFile, "{}: local header and directory disagree on method or flags", where);
  }
  const bool streamed = (entry.flags & kHasDescriptor) != 0;
  const bool blank = streamed && header.crc32 == 0 && header.size == 0 && header.compressed_size == 0;
  if (blank) return;
  if (header.size != entry.size || header.compressed_size != entry.compressed_size) {
    fail(ErrorCode::kCorruptFile, "{}: {} bytes in its local header, {} in the directory", where, header.size,
         entry.size);
  }
  if (header.crc32 != entry.crc32) {
    fail(ErrorCode::kCorruptFile, "{}: local header and directory disagree on the checksum", where);
  }
}

}  // namespace

void apply_zip64_extra(std::span<const std::byte> extra, std::array<uint64_t*, 3> fields, uint64_t* disk,
                       std::string_view where) {
  ByteReader reader(find_zip64(extra, where), where);
  for (uint64_t* field : fields) {
    if (field == nullptr || *field != kMax32) continue;
    *field = reader.read<uint64_t>("zip64 extra field");
  }
  if (disk != nullptr && *disk == kMax16) *disk = reader.read<uint32_t>("zip64 extra field");
}

Extent locate(std::span<const std::byte> bytes, const Entry& entry, size_t limit, std::string_view file) {
  const std::string where = fmt::format("{}: member {}", file, quote_text(entry.name));
  if (entry.local_offset >= limit) {
    fail(ErrorCode::kCorruptFile, "{}: starts at byte {}, past the last member's end at {}", where,
         entry.local_offset, limit);
  }
  Extent extent;
  extent.begin = static_cast<size_t>(entry.local_offset);
  const auto before_directory = bytes.first(limit);
  const LocalHeader header = read_local(before_directory, extent.begin, where);
  check_agreement(header, entry, where);
  extent.data = header.data;
  if (entry.compressed_size > limit - extent.data) {
    fail(ErrorCode::kCorruptFile, "{}: its {} bytes at {} reach past the last member's end at {}", where,
         entry.compressed_size, extent.data, limit);
  }
  extent.end = extent.data + static_cast<size_t>(entry.compressed_size);
  if ((entry.flags & kHasDescriptor) != 0) {
    const size_t length = descriptor_length(before_directory.subspan(extent.end), entry);
    if (length == 0) {
      fail(ErrorCode::kCorruptFile, "{}: no data descriptor at byte {} that agrees with the directory", where,
           extent.end);
    }
    extent.end += length;
  }
  return extent;
}

}  // namespace halftone::zip
