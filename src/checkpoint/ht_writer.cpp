#include "checkpoint/ht_writer.h"

#include <array>

#include "archive/atomic_file.h"
#include "base/errors.h"
#include "base/sha256.h"
#include "checkpoint/ht_format.h"

namespace halftone {
namespace {

constexpr std::array<std::byte, ht::kAlignment> kZeros{};

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

}  // namespace

void write_ht(const std::string& path, const std::vector<SafetensorsTensor>& tensors,
              std::map<std::string, std::string> metadata) {
  metadata[ht::kFormatKey] = std::to_string(ht::kVersion);
  std::vector<SafetensorsTensor> all = with_padding(tensors);
  all.push_back({std::string(ht::kDigest),
                 DType::kUint8,
                 {static_cast<int64_t>(ht::kDigestSize)},
                 std::span(kZeros).first(ht::kDigestSize)});
  const std::string head = make_safetensors_head(path, all, metadata, ht::kAlignment);
  all.pop_back();

  AtomicFile file(path);
  Sha256 hash;
  const auto write = [&](std::span<const std::byte> bytes) {
    hash.update(bytes);
    file.write(bytes);
  };
  write(std::as_bytes(std::span(head)));
  for (const SafetensorsTensor& tensor : all) write(tensor.bytes);
  const Sha256Digest digest = hash.finish();
  file.write(std::as_bytes(std::span(digest)));
  file.commit();
}

}  // namespace halftone
