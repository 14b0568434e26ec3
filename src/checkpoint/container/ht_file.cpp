#include "checkpoint/container/ht_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "base/sha256.h"
#include "checkpoint/container/ht_digests.h"
#include "checkpoint/container/ht_json.h"
#include "halftone/base/version.h"

namespace halftone {
namespace {

int64_t read_version(const std::string& text, const std::string& file) {
  int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size() || version < 1) {
    fail(ErrorCode::kCorruptFile, "{}: {} is {}, not a version", file, ht::kFormatKey, quote_text(text));
  }
  return version;
}

bool is_known_key(const std::string& key, int64_t version) {
  const auto known = ht::keys_of(version);
  return std::any_of(known.begin(), known.end(), [&](const std::string* one) { return *one == key; });
}

/// "0.2.0" as numbers; nothing for other text.
std::optional<std::array<int, 3>> try_release(std::string_view text) {
  std::array<int, 3> numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), numbers[i]);
    if (error != std::errc() || numbers[i] < 0) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (i + 1 == numbers.size()) break;
    if (!text.starts_with('.')) return std::nullopt;
    text.remove_prefix(1);
  }
  return text.empty() ? std::optional(numbers) : std::nullopt;
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte value) { return value == std::byte{0}; });
}

}  // namespace

bool is_filler(std::string_view stored_name) {
  return stored_name.starts_with(ht::kPadding) || stored_name == ht::kDigest ||
         stored_name == ht::kDigestTable;
}

HtFile HtFile::open(const std::string& path, LoadMode mode) {
  return from_bytes(FileBytes::open(path, mode));
}

HtFile HtFile::from_bytes(std::shared_ptr<FileBytes> bytes) {
  HtFile file;
  file.bytes_ = std::move(bytes);
  file.tensors_ = SafetensorsFile::from_bytes(file.bytes_);
  file.metadata_ = HtMetadata(file.tensors_.metadata(), file.name());
  if (!file.metadata_.has(ht::kFormatKey)) {
    fail(ErrorCode::kCorruptFile, "{}: a safetensors file, but no .ht: its metadata lack {}", file.name(),
         ht::kFormatKey);
  }
  file.version_ = read_version(file.metadata_.text(ht::kFormatKey), file.name());
  return file;
}

const std::string& HtMetadata::text(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) fail(ErrorCode::kCorruptFile, "{}: its metadata lack {}", file_, key);
  return found->second;
}

nlohmann::json HtMetadata::json(const std::string& key, const JsonLimits& limits) const {
  return parse_json(text(key), place(key), limits);
}

std::string HtFile::stored_digest() const {
  Sha256Digest digest{};
  const auto bytes = bytes_->bytes();
  if (bytes.size() < digest.size()) fail(ErrorCode::kCorruptFile, "{}: too short for a checksum", name());
  const auto last = bytes.last(digest.size());
  std::transform(last.begin(), last.end(), digest.begin(),
                 [](std::byte value) { return std::to_integer<uint8_t>(value); });
  return to_hex(digest);
}

bool HtFile::digest_matches() const {
  const auto bytes = bytes_->bytes();
  return bytes.size() >= ht::kDigestSize &&
         to_hex(sha256(bytes.first(bytes.size() - ht::kDigestSize))) == stored_digest();
}

std::string HtFile::chunk_finding(unsigned threads) const {
  if (version_ == 1) return {};
  require_digests();
  const auto stored = tensors_.try_entry(ht::kDigestTable)->bytes;
  const auto covered = bytes_->bytes().first(static_cast<size_t>(stored.data() - bytes_->bytes().data()));
  const ht::DigestTable found = ht::digest_table(covered, threads);
  const auto expected = std::as_bytes(std::span(found));
  const auto [wrong, ours] = std::mismatch(stored.begin(), stored.end(), expected.begin());
  if (wrong == stored.end()) return {};
  const size_t row = static_cast<size_t>(wrong - stored.begin()) / ht::kDigestSize;
  if (row + 1 == found.size())
    return "the checksum of the checksums does not match: the file was damaged or changed";
  return fmt::format("the checksum of the bytes {} to {} does not match: the file was damaged or changed",
                     row * ht::kChunk, std::min((row + 1) * ht::kChunk, covered.size()) - 1);
}

void HtFile::require_intact() const {
  // Other versions than 2: what every version has, so that a damaged version number does not look like a
  // newer one.
  const std::string finding = version_ == 2 ? chunk_finding()
                              : digest_matches()
                                  ? ""
                                  : "the checksum does not match: the file was damaged or changed";
  if (!finding.empty()) fail(ErrorCode::kCorruptFile, "{}: {}", name(), finding);
}

void HtFile::require_version() const {
  const std::string writer =
      metadata_.has(ht::kWriterKey) ? quote_text(metadata_.text(ht::kWriterKey)) : "an unknown program";
  const std::string needs = metadata_.has(ht::kNeedsKey) ? metadata_.text(ht::kNeedsKey) : "";
  const auto needed = try_release(needs);
  if (version_ > ht::kVersion && !needed) {
    fail(ErrorCode::kUnsupported,
         "{}: .ht version {}, written by a newer Halftone ({}); this one, {}, reads versions 1 to {}", name(),
         version_, writer, halftone::version(), ht::kVersion);
  }
  if (version_ > ht::kVersion || (needed && *needed > *try_release(halftone::version()))) {
    fail(ErrorCode::kUnsupported,
         "{}: needs Halftone ≥ {}: .ht version {}, written by {}; this is Halftone {}, which reads versions "
         "1 to {}",
         name(), needs, version_, writer, halftone::version(), ht::kVersion);
  }
  if (version_ > 1 && !needed) {
    fail(ErrorCode::kCorruptFile, "{}: {} is {}, not a version of Halftone", name(), ht::kNeedsKey,
         quote_text(needs));
  }
}

void HtFile::require_digests() const {
  const auto bytes = bytes_->bytes();
  const std::byte* end = bytes.data() + bytes.size();
  const auto ends_at = [](const SafetensorsEntry* entry, const std::byte* place) {
    return entry != nullptr && entry->dtype == DType::kUint8 &&
           entry->bytes.data() + entry->bytes.size() == place;
  };
  const SafetensorsEntry* digest = tensors_.try_entry(ht::kDigest);
  if (!ends_at(digest, end) || digest->bytes.size() != ht::kDigestSize)
    fail(ErrorCode::kCorruptFile, "{}: its last tensor is not {}", name(), ht::kDigest);
  if (version_ == 1) return;
  const SafetensorsEntry* table = tensors_.try_entry(ht::kDigestTable);
  if (!ends_at(table, digest->bytes.data()))
    fail(ErrorCode::kCorruptFile, "{}: its last tensor but one is not {}", name(), ht::kDigestTable);
  const size_t rows = ht::digest_rows(static_cast<size_t>(table->bytes.data() - bytes.data()));
  const std::vector<int64_t> shape = {static_cast<int64_t>(rows), static_cast<int64_t>(ht::kDigestSize)};
  if (table->shape != shape) {
    fail(ErrorCode::kCorruptFile, "{}: {} has the shape [{}], not [{}]", name(), ht::kDigestTable,
         fmt::join(table->shape, ", "), fmt::join(shape, ", "));
  }
}

void HtFile::require_readable(bool verify) const {
  if (verify) require_intact();
  require_version();
  for (const auto& [key, value] : metadata_.values()) {
    if (key.starts_with(ht::kKeyPrefix) && !is_known_key(key, version_)) {
      fail(ErrorCode::kUnsupported, "{}: version {} has no metadata {}", name(), version_, quote_text(key));
    }
  }
  require_digests();
  const auto bytes = bytes_->bytes();
  for (const SafetensorsEntry& entry : tensors_.entries()) {
    const auto start = static_cast<size_t>(entry.bytes.data() - bytes.data());
    if (!is_filler(entry.name) && !entry.bytes.empty() && start % ht::kAlignment != 0) {
      fail(ErrorCode::kCorruptFile, "{}: tensor {} begins at {}, no multiple of {}", name(),
           quote_text(entry.name), start, ht::kAlignment);
    }
  }
}

std::vector<std::string> HtFile::layout_findings() const {
  std::vector<std::string> findings;
  for (const SafetensorsEntry& entry : tensors_.entries()) {
    if (!entry.name.starts_with(ht::kPadding)) continue;
    if (entry.dtype != DType::kUint8 || entry.bytes.size() >= ht::kAlignment || !is_zero(entry.bytes)) {
      findings.push_back(
          fmt::format("padding {} is not fewer than {} zero bytes", quote_text(entry.name), ht::kAlignment));
    }
  }
  return findings;
}

}  // namespace halftone
