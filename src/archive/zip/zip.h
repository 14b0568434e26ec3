// Reader of zip containers whose members are stored (not compressed), as torch writes them, or deflated, as
// numpy may write them. For untrusted files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halftone {

struct ZipMember {
  std::string name;            ///< as written, checked: relative, no "..", no backslash, no NUL, not empty
  std::span<std::byte> bytes;  ///< inside the container's bytes
  uint32_t crc32 = 0;          ///< as the central directory says, of the content
  bool deflated = false;       ///< then `bytes` are not the content
  uint64_t size = 0;           ///< of the content, as the central directory says
};

enum class ZipMethods { kStored, kStoredAndDeflated };

/// The directory of one container. Borrows the bytes, which must outlive it. Opening checks everything that
/// can be checked without reading member data: magic numbers, zip64 records, sizes, that local headers agree
/// with the central directory, that members are stored (or deflated, where `methods` allows it), lie inside
/// the file and do not overlap, that names are unique and harmless. Every error is kCorruptFile (or
/// kUnsupported: compressed, encrypted, multi-disk) and names `file` and the member.
class ZipReader {
 public:
  ZipReader(std::span<std::byte> bytes, std::string file, ZipMethods methods = ZipMethods::kStored);

  const std::string& file() const { return file_; }
  const std::vector<ZipMember>& members() const { return members_; }

  /// nullptr if there is none.
  const ZipMember* try_member(std::string_view name) const;
  /// Throws kCorruptFile: "file: member … is missing".
  const ZipMember& member(std::string_view name) const;
  /// Throws kCorruptFile where the stored member's bytes do not give its CRC-32.
  void verify_crc(const ZipMember& member) const;
  /// The same for the CRC-32 of its content.
  void verify_crc(const ZipMember& member, uint32_t computed) const;

 private:
  std::string file_;
  std::vector<ZipMember> members_;  // sorted by name
};

}  // namespace halftone
