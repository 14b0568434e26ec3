#include "checkpoint/ht_file.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "archive/text.h"
#include "base/errors.h"
#include "base/sha256.h"
#include "checkpoint/ht_json.h"

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

bool is_known_key(const std::string& key) {
  return std::any_of(ht::kKeys.begin(), ht::kKeys.end(),
                     [&](const std::string* known) { return *known == key; });
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte value) { return value == std::byte{0}; });
}

}  // namespace

bool is_filler(std::string_view stored_name) {
  return stored_name.starts_with(ht::kPadding) || stored_name == ht::kDigest;
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

nlohmann::json HtMetadata::json(const std::string& key) const {
  return parse_json(text(key), place(key));
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

void HtFile::require_readable(bool verify) const {
  // Before the version: every version ends with the digest, and a damaged version number must not look like a
  // newer one.
  if (verify && !digest_matches()) {
    fail(ErrorCode::kCorruptFile, "{}: the checksum does not match: the file was damaged or changed", name());
  }
  if (version_ != ht::kVersion) {
    fail(ErrorCode::kUnsupported,
         "{}: .ht version {}, written by a newer Halftone ({}); this one reads version {}", name(), version_,
         metadata_.has(ht::kWriterKey) ? metadata_.text(ht::kWriterKey) : "unknown", ht::kVersion);
  }
  for (const auto& [key, value] : metadata_.values()) {
    if (key.starts_with(ht::kKeyPrefix) && !is_known_key(key)) {
      fail(ErrorCode::kUnsupported, "{}: version {} has no metadata {}", name(), version_, quote_text(key));
    }
  }
  const SafetensorsEntry* digest = tensors_.try_entry(ht::kDigest);
  const auto bytes = bytes_->bytes();
  if (digest == nullptr || digest->dtype != DType::kUint8 || digest->bytes.size() != ht::kDigestSize ||
      digest->bytes.data() + digest->bytes.size() != bytes.data() + bytes.size()) {
    fail(ErrorCode::kCorruptFile, "{}: its last tensor is not {}", name(), ht::kDigest);
  }
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
