// safetensors files, read (hardened) and written (atomically), without torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/bytes/dtype.h"
#include "archive/bytes/file_bytes.h"

namespace halftone {

struct SafetensorsEntry {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::span<std::byte> bytes;        ///< row-major, inside `owner`'s bytes; may be misaligned for its dtype
  std::shared_ptr<FileBytes> owner;  ///< keeps `bytes` alive
};

/// One file, or several that an index joins.
class SafetensorsFile {
 public:
  /// Refuses (kCorruptFile, with file and tensor name) whatever the format forbids: header longer than 100
  /// MB, duplicate names, unknown dtypes, shapes that overflow, ranges that do not match the shape, holes,
  /// overlaps, trailing bytes.
  static SafetensorsFile open(const std::string& path, LoadMode mode = LoadMode::kMap);
  static SafetensorsFile from_bytes(std::shared_ptr<FileBytes> bytes);
  /// A "….safetensors.index.json": its weight_map names files beside it (plain names only, no path
  /// separators).
  static SafetensorsFile open_sharded(const std::string& index_path, LoadMode mode = LoadMode::kMap);

  const std::vector<SafetensorsEntry>& entries() const { return entries_; }  ///< sorted by name
  const SafetensorsEntry* try_entry(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

struct SafetensorsTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  ///< row-major, exactly the size that dtype and shape give
};

/// The length and the header of a file whose data are these tensors, in this order, without gaps. Spaces fill
/// the header up so that the data begin at a multiple of `alignment`. Throws kInvalidArgument (duplicate
/// name, size mismatch, reserved name, text that is not UTF-8, more than the format's 100 MB); `path` is for
/// messages.
std::string make_safetensors_head(const std::string& path, std::span<const SafetensorsTensor> tensors,
                                  const std::map<std::string, std::string>& metadata, size_t alignment);

/// Writes to a temporary file beside `path`, fsyncs, renames over `path`, fsyncs the directory: a reader sees
/// the old file or the new one. The tensors stand in the file in descending order of alignment, then by name,
/// as the Python package writes them, so equal input gives equal bytes. Throws kIo, kInvalidArgument
/// (duplicate name, size mismatch, reserved name).
void write_safetensors(const std::string& path, std::vector<SafetensorsTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace halftone
