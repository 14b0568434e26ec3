// The container of .ht files, read without torch: version, checksum, metadata, and where each tensor of the
// model stands.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "archive/safetensors/safetensors.h"
#include "base/json.h"
#include "checkpoint/container/ht_format.h"

namespace halftone {

/// How a tensor of the model is stored. Several records may name one stored tensor: they share its memory.
struct HtRecord {
  struct View {
    DType dtype;
    int64_t offset = 0;  ///< in bytes, from the stored tensor's first
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;  ///< in elements
    bool operator==(const View&) const = default;
  };

  std::string name;    ///< in the model; any bytes
  std::string stored;  ///< name of the stored tensor
  bool requires_grad = false;
  /// The tensor is a row-major copy; in memory it had these strides, a permutation without holes.
  std::optional<std::vector<int64_t>> strides;
  /// The tensor is a part of the stored bytes, in another type or with other strides.
  std::optional<View> view;
};

nlohmann::json record_json(const HtRecord& record);
HtRecord record_of(const JsonCursor& place);

/// A record with its bytes, checked: every element lies inside `bytes`.
struct HtPlace {
  const SafetensorsEntry* entry;
  DType dtype;
  std::vector<int64_t> sizes;
  std::optional<std::vector<int64_t>> strides;  ///< nothing: row-major
  int64_t offset = 0;                           ///< in elements
  bool is_view = false;                         ///< false: strides ask for a copy in that layout
};

/// The metadata of a file, or those that are about to be written.
class HtMetadata {
 public:
  HtMetadata() = default;
  HtMetadata(std::map<std::string, std::string> values, std::string file)
      : values_(std::move(values)), file_(std::move(file)) {}
  const std::map<std::string, std::string>& values() const { return values_; }
  bool has(const std::string& key) const { return values_.contains(key); }
  /// kCorruptFile if it is missing.
  const std::string& text(const std::string& key) const;
  nlohmann::json json(const std::string& key, const JsonLimits& limits = {}) const;
  /// "model.ht: halftone.call", for messages.
  std::string place(const std::string& key) const { return file_ + ": " + key; }
  const std::string& file() const { return file_; }

 private:
  std::map<std::string, std::string> values_;
  std::string file_;
};

class HtFile {
 public:
  /// kNotFound, kIo; kCorruptFile if the file is not a safetensors file or not a .ht. Says nothing of version
  /// and checksum.
  static HtFile open(const std::string& path, LoadMode mode);
  static HtFile from_bytes(std::shared_ptr<FileBytes> bytes);

  const std::string& name() const { return bytes_->name(); }
  size_t size() const { return bytes_->bytes().size(); }
  const SafetensorsFile& tensors() const { return tensors_; }
  int64_t version() const { return version_; }
  const HtMetadata& metadata() const { return metadata_; }

  /// The digest that the file holds, as text, and whether it is the one of the bytes before it.
  std::string stored_digest() const;
  bool digest_matches() const;
  /// From version 2 on: the first chunk whose digest is wrong, or the table itself, as a sentence; empty
  /// if all are right. `threads`: as ht::digest_table takes them.
  std::string chunk_finding(unsigned threads = 0) const;

  /// kCorruptFile if a checksum is wrong (only with `verify`): those of the chunks, in version 1 that of
  /// the whole. kUnsupported if a newer Halftone is needed or a key of the metadata is not known;
  /// kCorruptFile if a digest or a tensor stands if the version does not put it.
  void require_readable(bool verify) const;
  /// What the format forbids in the layout and a reader could live with, for verify: padding that is not
  /// zero, …
  std::vector<std::string> layout_findings() const;

  /// kCorruptFile if the record does not fit what is stored.
  HtPlace place(const HtRecord& record) const;

 private:
  void require_intact() const;
  void require_version() const;
  void require_digests() const;
  std::shared_ptr<FileBytes> bytes_;
  SafetensorsFile tensors_;
  HtMetadata metadata_;
  int64_t version_ = 0;
};

/// Whether the format, not the model, owns a stored tensor's bytes: padding and digests.
bool is_filler(std::string_view stored_name);

}  // namespace halftone
