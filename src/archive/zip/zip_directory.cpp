// Finding and reading the central directory, in its 32-bit and 64-bit forms.
#include <optional>

#include "archive/bytes/byte_reader.h"
#include "archive/bytes/text.h"
#include "archive/zip/zip_records.h"
#include "archive/zip/zip_zip64.h"
#include "base/checked.h"

namespace halftone::zip {
namespace {

constexpr uint32_t kEntryMagic = 0x02014b50;
constexpr uint32_t kEndMagic = 0x06054b50;
constexpr uint32_t kEnd64Magic = 0x06064b50;
constexpr uint32_t kLocator64Magic = 0x07064b50;
constexpr size_t kEndSize = 22;
constexpr size_t kEnd64Size = 56;
constexpr size_t kLocator64Size = 20;
constexpr size_t kEntrySize = 46;

/// The end record is found backwards, because a comment of up to 64 KiB may follow it. Only a record whose
/// comment reaches exactly to the end of the file counts, so bytes inside a comment cannot pose as one by
/// accident.
size_t find_end(std::span<const std::byte> bytes, std::string_view file) {
  if (bytes.size() < kEndSize) {
    fail(ErrorCode::kCorruptFile, "{}: {} bytes are too few for a zip container", file, bytes.size());
  }
  const size_t last = bytes.size() - kEndSize;
  const size_t first = last > kMax16 ? last - kMax16 : 0;
  for (size_t at = last + 1; at-- > first;) {
    if (load_le<uint32_t>(bytes, at) != kEndMagic) continue;
    if (at + kEndSize + load_le<uint16_t>(bytes, at + 20) == bytes.size()) return at;
  }
  fail(ErrorCode::kCorruptFile, "{}: no end-of-directory record: not a zip container, or cut off", file);
}

struct End {
  uint64_t disk = 0;
  uint64_t directory_disk = 0;
  uint64_t entries_on_disk = 0;
  uint64_t entries = 0;
  uint64_t directory_size = 0;
  uint64_t directory_offset = 0;
  size_t position = 0;  ///< of the record that the directory must reach up to
};

End read_end(std::span<const std::byte> bytes, size_t at, std::string_view file) {
  ByteReader reader(bytes, file, at + sizeof(kEndMagic));
  End end;
  end.disk = reader.read<uint16_t>("disk number");
  end.directory_disk = reader.read<uint16_t>("directory disk");
  end.entries_on_disk = reader.read<uint16_t>("entry count");
  end.entries = reader.read<uint16_t>("entry count");
  end.directory_size = reader.read<uint32_t>("directory size");
  end.directory_offset = reader.read<uint32_t>("directory offset");
  end.position = at;
  return end;
}

/// A field of the 32-bit record either says "see the 64-bit one" or repeats it.
void apply(uint64_t& narrow, uint64_t wide, uint64_t saturated, std::string_view what,
           std::string_view file) {
  if (narrow != saturated && narrow != wide) {
    fail(ErrorCode::kCorruptFile, "{}: {} is {} in the end record but {} in its zip64 form", file, what,
         narrow, wide);
  }
  narrow = wide;
}

void apply_end64(std::span<const std::byte> bytes, size_t locator, End& end, std::string_view file) {
  ByteReader reader(bytes, file, locator + sizeof(kLocator64Magic));
  const auto disk = reader.read<uint32_t>("zip64 locator");
  const auto offset = reader.read<uint64_t>("zip64 locator");
  const auto disks = reader.read<uint32_t>("zip64 locator");
  if (disk != 0 || disks > 1) fail(ErrorCode::kUnsupported, "{}: spans {} disks", file, disks);
  if (locator < kEnd64Size || offset > locator - kEnd64Size) {
    fail(ErrorCode::kCorruptFile, "{}: zip64 end record at {} lies past its locator at {}", file, offset,
         locator);
  }
  reader = ByteReader(bytes, file, static_cast<size_t>(offset));
  if (reader.read<uint32_t>("zip64 end record") != kEnd64Magic) {
    fail(ErrorCode::kCorruptFile, "{}: byte {}: no zip64 end record where its locator points", file, offset);
  }
  const auto size = reader.read<uint64_t>("zip64 end record");
  if (size != locator - offset - 12) {
    fail(ErrorCode::kCorruptFile, "{}: zip64 end record of {} bytes does not reach its locator", file, size);
  }
  reader.read_bytes(4, "zip64 versions");
  apply(end.disk, reader.read<uint32_t>("disk number"), kMax16, "disk number", file);
  apply(end.directory_disk, reader.read<uint32_t>("directory disk"), kMax16, "directory disk", file);
  apply(end.entries_on_disk, reader.read<uint64_t>("entry count"), kMax16, "entry count of this disk", file);
  apply(end.entries, reader.read<uint64_t>("entry count"), kMax16, "entry count", file);
  apply(end.directory_size, reader.read<uint64_t>("directory size"), kMax32, "directory size", file);
  apply(end.directory_offset, reader.read<uint64_t>("directory offset"), kMax32, "directory offset", file);
  end.position = static_cast<size_t>(offset);
}

Entry read_entry(ByteReader& reader, std::string_view file) {
  const size_t at = reader.position();
  if (reader.read<uint32_t>("directory entry") != kEntryMagic) {
    fail(ErrorCode::kCorruptFile, "{}: byte {}: no directory entry where one must stand", file, at);
  }
  Entry entry;
  reader.read_bytes(4, "entry versions");
  entry.flags = reader.read<uint16_t>("entry flags");
  entry.method = reader.read<uint16_t>("entry method");
  reader.read_bytes(4, "entry time");
  entry.crc32 = reader.read<uint32_t>("entry checksum");
  entry.compressed_size = reader.read<uint32_t>("entry size");
  entry.size = reader.read<uint32_t>("entry size");
  const auto name_length = reader.read<uint16_t>("entry name length");
  const auto extra_length = reader.read<uint16_t>("entry extra length");
  const auto comment_length = reader.read<uint16_t>("entry comment length");
  uint64_t disk = reader.read<uint16_t>("entry disk");
  reader.read_bytes(6, "entry attributes");
  entry.local_offset = reader.read<uint32_t>("entry offset");
  entry.name = reader.read_text(name_length, "entry name");
  const auto extra = reader.read_bytes(extra_length, "entry extra field");
  reader.read_bytes(comment_length, "entry comment");

  const std::string where = fmt::format("{}: member {}", file, quote_text(entry.name));
  apply_zip64_extra(extra, {&entry.size, &entry.compressed_size, &entry.local_offset}, &disk, where);
  if (disk != 0) fail(ErrorCode::kUnsupported, "{}: lies on disk {} of a multi-disk container", where, disk);
  return entry;
}

}  // namespace

Directory find_directory(std::span<const std::byte> bytes, std::string_view file) {
  const size_t at = find_end(bytes, file);
  End end = read_end(bytes, at, file);
  const bool has_end64 =
      at >= kLocator64Size && load_le<uint32_t>(bytes, at - kLocator64Size) == kLocator64Magic;
  if (has_end64) apply_end64(bytes, at - kLocator64Size, end, file);
  if (end.disk != 0 || end.directory_disk != 0 || end.entries_on_disk != end.entries) {
    fail(ErrorCode::kUnsupported, "{}: is one disk of a multi-disk container", file);
  }
  const auto directory_end = checked_add(end.directory_offset, end.directory_size);
  if (!directory_end || *directory_end != end.position) {
    fail(ErrorCode::kCorruptFile, "{}: directory of {} bytes at {} does not end at its end record, byte {}",
         file, end.directory_size, end.directory_offset, end.position);
  }
  // Bounds every later allocation by the size of the file.
  if (end.entries > end.directory_size / kEntrySize) {
    fail(ErrorCode::kCorruptFile, "{}: {} entries do not fit a directory of {} bytes", file, end.entries,
         end.directory_size);
  }
  return {static_cast<size_t>(end.directory_offset), end.position, end.entries};
}

std::vector<Entry> read_entries(std::span<const std::byte> bytes, const Directory& directory,
                                std::string_view file) {
  ByteReader reader(bytes.first(directory.end), file, directory.begin);
  std::vector<Entry> entries;
  entries.reserve(static_cast<size_t>(directory.entries));
  for (uint64_t i = 0; i < directory.entries; ++i) entries.push_back(read_entry(reader, file));
  if (reader.position() != directory.end) {
    fail(ErrorCode::kCorruptFile, "{}: {} bytes after the last of {} directory entries", file, reader.left(),
         directory.entries);
  }
  return entries;
}

}  // namespace halftone::zip
