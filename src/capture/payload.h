// Tensors of a .pt2 file, placed on the bytes of its members.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <map>
#include <memory>
#include <span>
#include <string>

#include "archive/bytes/file_bytes.h"
#include "base/json.h"
#include "capture/pt2_types.h"

namespace halftone {

class Pt2Archive;

/// A storage on `bytes`, which lie inside `owner`'s and keep it alive; a copy where they are misaligned for
/// some dtype.
c10::Storage storage_on_bytes(std::span<std::byte> bytes, const std::shared_ptr<FileBytes>& owner);

/// A tensor with that metadata on the storage. kCorruptFile, with `place` before the message, if it does
/// not fit.
at::Tensor tensor_on_storage(const c10::Storage& storage, const StoredTensorMeta& meta,
                             const std::string& place);

/// The payloads of one folder. Names that share a member (tied parameters) share its storage.
class PayloadStorages {
 public:
  /// Borrows the archive.
  PayloadStorages(const Pt2Archive& archive, std::string folder)
      : archive_(archive), folder_(std::move(folder)) {}

  /// The tensor that an entry of the payload config describes.
  at::Tensor load(const Pt2Context& context, const JsonCursor& entry, const std::string& name);

 private:
  const Pt2Archive& archive_;
  std::string folder_;
  std::map<std::string, c10::Storage> storages_;
};

}  // namespace halftone
