#include "compiler/executor/memory/guarded_memory.h"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_map>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace halftone::compiler {

namespace {

/// Under the address sanitizer our own code is stopped at the first wrong byte, before the guard page. (torch
/// is not instrumented: for it the page and the pattern remain.)
void forbid(const std::byte* from, const std::byte* to) {
#ifdef __SANITIZE_ADDRESS__
  __asan_poison_memory_region(from, static_cast<size_t>(to - from));
#endif
}
void permit(const std::byte* from, const std::byte* to) {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(from, static_cast<size_t>(to - from));
#endif
}

constexpr size_t kTensorAlignment = 64;  // what c10's own allocator promises
constexpr uint8_t kPattern = 0xa5;

size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// One mapping: a page without access, pages of data, a page without access.
struct GuardedBlock {
  std::byte* mapping = nullptr;
  size_t mapped = 0;  ///< bytes, both guards too
  std::byte* data = nullptr;
  size_t bytes = 0;

  std::byte* first() const { return mapping + page_bytes(); }
  std::byte* end() const { return mapping + mapped - page_bytes(); }

  void fill_slack() const {
    std::memset(first(), kPattern, static_cast<size_t>(data - first()));
    std::memset(data + bytes, kPattern, static_cast<size_t>(end() - data) - bytes);
    forbid(first(), data);
    forbid(data + bytes, end());
  }
  bool slack_is_whole() const {
    permit(first(), end());
    // All bytes are alike if each is as the one after it: memcmp is quick under sanitizers too.
    const auto whole = [](const std::byte* from, const std::byte* to) {
      return from == to || (*from == std::byte{kPattern} &&
                            std::memcmp(from, from + 1, static_cast<size_t>(to - from) - 1) == 0);
    };
    return whole(first(), data) && whole(data + bytes, end());
  }
};

/// Freed mappings of few pages are kept, without access, and used again, the oldest first: mapping and unmapping
/// costs more, and the system would give what was unmapped to the next one at once.
constexpr size_t kKeptPages = 16;  ///< of data, at most
constexpr size_t kMinKept = 32;    ///< of each size: so many are freed before one is used again
constexpr size_t kMaxKept = 256;

/// By the address of the data, which is all that c10 gives back when it frees. Never destroyed: tensors with
/// static lifetime are freed late.
struct Blocks {
  std::mutex mutex;
  std::unordered_map<void*, GuardedBlock> all;
  std::array<std::deque<std::byte*>, kKeptPages + 1> kept;  ///< mappings, by pages of data
};
Blocks& blocks() {
  static auto* the_blocks = new Blocks;
  return *the_blocks;
}

/// An old mapping for `pages` pages of data, not accessible; null where there is none to spare.
std::byte* try_kept(size_t pages) {
  if (pages > kKeptPages) return nullptr;
  const std::lock_guard lock(blocks().mutex);
  std::deque<std::byte*>& kept = blocks().kept[pages];
  if (kept.size() < kMinKept) return nullptr;
  std::byte* mapping = kept.front();
  kept.pop_front();
  return mapping;
}

void keep_or_unmap(const GuardedBlock& block) {
  const size_t pages = static_cast<size_t>(block.end() - block.first()) / page_bytes();
  if (pages <= kKeptPages && mprotect(block.first(), pages * page_bytes(), PROT_NONE) == 0) {
    const std::lock_guard lock(blocks().mutex);
    std::deque<std::byte*>& kept = blocks().kept[pages];
    if (kept.size() < kMaxKept) return kept.push_back(block.mapping);
  }
  munmap(block.mapping, block.mapped);
}

void free_guarded(void* data) {
  GuardedBlock block;
  {
    const std::lock_guard lock(blocks().mutex);
    const auto found = blocks().all.extract(data);
    if (found) block = found.mapped();
  }
  // Code that frees by address alone asks the present allocator, also for memory that an earlier one made.
  if (block.data == nullptr) return c10::GetDefaultCPUAllocator()->raw_deleter()(data);
  if (!block.slack_is_whole()) {
    std::fprintf(stderr, "guarded memory: a buffer of %zu bytes was overrun\n", block.bytes);
    std::abort();
  }
  keep_or_unmap(block);
}

class GuardedAllocator final : public c10::Allocator {
 public:
  at::DataPtr allocate(size_t bytes) override { return guarded_allocate(bytes, kTensorAlignment); }
  c10::DeleterFnPtr raw_deleter() const override { return free_guarded; }
  void copy_data(void* to, const void* from, size_t count) const override { std::memcpy(to, from, count); }
};

std::atomic<bool> is_guarded{false};

}  // namespace

at::DataPtr guarded_allocate(size_t bytes, size_t alignment) {
  const c10::Device cpu(c10::DeviceType::CPU);
  if (bytes == 0) return {nullptr, cpu};
  const size_t page = page_bytes();
  const size_t pages = (bytes / page + 1) * page;
  GuardedBlock block;
  block.mapped = pages + 2 * page;
  block.bytes = bytes;
  void* mapping = try_kept(pages / page);
  const bool used_before = mapping != nullptr;
  if (!used_before)
    mapping = bytes > SIZE_MAX / 2 ? MAP_FAILED
                                   : mmap(nullptr, block.mapped, PROT_NONE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) TORCH_CHECK(false, "no memory for a buffer of ", bytes, " bytes");
  block.mapping = static_cast<std::byte*>(mapping);
  if (mprotect(block.first(), pages, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping, block.mapped);
    TORCH_CHECK(false, "no memory for a buffer of ", bytes, " bytes");
  }
  block.data = block.first() + (pages - bytes) / alignment * alignment;
  if (used_before) std::memset(block.data, 0, bytes);
  block.fill_slack();
  const std::lock_guard lock(blocks().mutex);
  blocks().all.emplace(block.data, block);
  return {block.data, block.data, free_guarded, cpu};
}

void set_guarded_plan_memory(bool on) {
  static GuardedAllocator allocator;
  is_guarded = on;
  c10::SetCPUAllocator(on ? static_cast<c10::Allocator*>(&allocator) : c10::GetDefaultCPUAllocator());
}

bool guarded_plan_memory() {
  return is_guarded;
}

}  // namespace halftone::compiler
