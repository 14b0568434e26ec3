// The digests of .ht files by chunks: what several cores can compute side by side, where one SHA-256 of a
// whole file keeps a single one busy.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/sha256.h"

namespace halftone::ht {

/// A digest for each chunk of the bytes, and as the last one the digest of those digests.
using DigestTable = std::vector<Sha256Digest>;

/// Rows of the table of that many bytes.
size_t digest_rows(size_t bytes);
/// `threads`: at most so many; 0: as many as the machine has, up to 8.
DigestTable digest_table(std::span<const std::byte> bytes, unsigned threads = 0);

/// The same table for bytes that come in pieces.
class ChunkHasher {
 public:
  ChunkHasher();
  ~ChunkHasher();
  void update(std::span<const std::byte> bytes);
  /// Ends the computation.
  DigestTable finish();

 private:
  DigestTable rows_;
  std::unique_ptr<Sha256> hash_;
  size_t filled_ = 0;  ///< bytes of the present chunk
};

}  // namespace halftone::ht
