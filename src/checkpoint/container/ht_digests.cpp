#include "checkpoint/container/ht_digests.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "checkpoint/container/ht_format.h"

namespace halftone::ht {
namespace {

constexpr unsigned kMaxThreads = 8;  // more would wait for memory, not for SHA-256

size_t chunks_of(size_t bytes) {
  return bytes / kChunk + (bytes % kChunk != 0 ? 1 : 0);
}

/// The table's last row.
Sha256Digest digest_of(const DigestTable& rows) {
  return sha256(std::as_bytes(std::span(rows)));
}

}  // namespace

size_t digest_rows(size_t bytes) {
  return chunks_of(bytes) + 1;
}

DigestTable digest_table(std::span<const std::byte> bytes, unsigned threads) {
  DigestTable rows(chunks_of(bytes.size()));
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < rows.size(); i = next++) {
      const size_t begin = i * kChunk;
      rows[i] = sha256(bytes.subspan(begin, std::min(kChunk, bytes.size() - begin)));
    }
  };
  if (threads == 0) threads = std::clamp(std::thread::hardware_concurrency(), 1u, kMaxThreads);
  const size_t helpers = std::min<size_t>(threads, std::max<size_t>(rows.size(), 1)) - 1;
  {
    std::vector<std::future<void>> running;
    // Without a policy: if the system has no thread to give, the work is done when it is waited for.
    for (size_t i = 0; i < helpers; ++i) running.push_back(std::async(work));
    work();
    for (auto& one : running) one.get();
  }
  rows.push_back(digest_of(rows));
  return rows;
}

ChunkHasher::ChunkHasher() : hash_(std::make_unique<Sha256>()) {}
ChunkHasher::~ChunkHasher() = default;

void ChunkHasher::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(kChunk - filled_, bytes.size()));
    hash_->update(part);
    filled_ += part.size();
    bytes = bytes.subspan(part.size());
    if (filled_ < kChunk) return;
    rows_.push_back(hash_->finish());
    hash_ = std::make_unique<Sha256>();
    filled_ = 0;
  }
}

DigestTable ChunkHasher::finish() {
  if (filled_ > 0) rows_.push_back(hash_->finish());
  rows_.push_back(digest_of(rows_));
  return std::move(rows_);
}

}  // namespace halftone::ht
