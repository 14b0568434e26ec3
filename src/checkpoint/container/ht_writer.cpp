#include "checkpoint/container/ht_writer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <future>

#include "archive/bytes/atomic_file.h"
#include "base/errors.h"
#include "base/sha256.h"
#include "checkpoint/container/ht_digests.h"
#include "checkpoint/container/ht_format.h"

namespace halftone {
namespace {

constexpr std::array<std::byte, ht::kAlignment> kZeros{};
constexpr size_t kPiece = size_t{1} << 20;

/// A write that fails must not wait for the digest of a file that is discarded anyway.
struct SetAtEnd {
  std::atomic<bool>& flag;
  ~SetAtEnd() { flag = true; }
};

/// The tensors with padding between them, so that each one that has bytes begins at a multiple of the
/// alignment.
std::vector<SafetensorsTensor> with_padding(const std::vector<SafetensorsTensor>& tensors) {
  std::vector<SafetensorsTensor> all;
  size_t end = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    const size_t gap = (ht::kAlignment - end % ht::kAlignment) % ht::kAlignment;
    if (gap > 0 && !tensor.bytes.empty()) {
      all.push_back({fmt::format("{}{}", ht::kPadding, all.size()),
                     DType::kUint8,
                     {static_cast<int64_t>(gap)},
                     std::span(kZeros).first(gap)});
      end += gap;
    }
    all.push_back(tensor);
    end += tensor.bytes.size();
  }
  return all;
}

size_t bytes_of(const std::vector<SafetensorsTensor>& tensors) {
  size_t bytes = 0;
  for (const SafetensorsTensor& tensor : tensors) bytes += tensor.bytes.size();
  return bytes;
}

/// The header of a file of these tensors, the table of digests and the digest. How long the table is depends
/// on the header's length, and the header says how long the table is: both only grow, so that this ends.
std::string head_of(const std::string& path, const std::vector<SafetensorsTensor>& tensors,
                    const std::map<std::string, std::string>& metadata) {
  const size_t data = bytes_of(tensors);
  constexpr auto kRow = static_cast<int64_t>(ht::kDigestSize);
  size_t rows = ht::digest_rows(data);
  while (true) {
    const std::vector<std::byte> table(rows * ht::kDigestSize);
    std::vector<SafetensorsTensor> all = tensors;
    all.push_back({std::string(ht::kDigestTable), DType::kUint8, {static_cast<int64_t>(rows), kRow}, table});
    all.push_back(
        {std::string(ht::kDigest), DType::kUint8, {kRow}, std::span(kZeros).first(ht::kDigestSize)});
    std::string head = make_safetensors_head(path, all, metadata, ht::kAlignment);
    const size_t needed = ht::digest_rows(head.size() + data);
    if (needed == rows) return head;
    rows = needed;
  }
}

}  // namespace

void write_ht(const std::string& path, const std::vector<SafetensorsTensor>& tensors,
              std::map<std::string, std::string> metadata) {
  metadata[ht::kFormatKey] = std::to_string(ht::kVersion);
  metadata[ht::kNeedsKey] = ht::kNeeds;
  const std::vector<SafetensorsTensor> all = with_padding(tensors);
  const std::string head = head_of(path, all, metadata);

  AtomicFile file(path);
  Sha256 whole;
  std::atomic<bool> stop{false};
  // The one digest of everything on a second core, chunks and writing on this one. What is less than a piece
  // is hashed sooner than a thread is made.
  const bool small = head.size() + bytes_of(all) <= kPiece;
  auto hashing = std::async(small ? std::launch::deferred : std::launch::async | std::launch::deferred, [&] {
    whole.update(std::as_bytes(std::span(head)));
    for (const SafetensorsTensor& tensor : all) {
      for (size_t begin = 0; begin < tensor.bytes.size() && !stop; begin += kPiece)
        whole.update(tensor.bytes.subspan(begin, std::min(kPiece, tensor.bytes.size() - begin)));
    }
  });
  const SetAtEnd end{stop};
  ht::ChunkHasher chunks;
  const auto write = [&](std::span<const std::byte> bytes) {
    // In pieces that are still in the cache when they are written.
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(kPiece, bytes.size()))) {
      chunks.update(bytes.first(std::min(kPiece, bytes.size())));
      file.write(bytes.first(std::min(kPiece, bytes.size())));
    }
  };
  write(std::as_bytes(std::span(head)));
  for (const SafetensorsTensor& tensor : all) write(tensor.bytes);
  const ht::DigestTable table = chunks.finish();
  hashing.get();
  whole.update(std::as_bytes(std::span(table)));
  const Sha256Digest digest = whole.finish();
  file.write(std::as_bytes(std::span(table)));
  file.write(std::as_bytes(std::span(digest)));
  file.commit();
}

}  // namespace halftone
