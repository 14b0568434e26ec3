#include "guarded_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

namespace halftone::hostile {
namespace {

constexpr size_t kAlignment = 64;  // ATen's
constexpr unsigned char kCanary = 0xA5;

/// What the deleter needs: where the mapping begins and what was asked for. Found by the data's address:
/// torch wants a deleter that takes just that.
struct Mapping {
  char* base;
  size_t length;
  char* data;
  size_t bytes;
  char* end;  ///< of the part that may be touched
};

/// The bytes around the data that alignment leaves over must stay as they were.
void check_canaries(const Mapping& mapping) {
  const char* begin =
      mapping.data - std::min<size_t>(static_cast<size_t>(mapping.data - mapping.base), kAlignment);
  for (const char* at = begin; at < mapping.data; ++at) {
    if (static_cast<unsigned char>(*at) != kCanary) std::abort();
  }
  for (const char* at = mapping.data + mapping.bytes; at < mapping.end; ++at) {
    if (static_cast<unsigned char>(*at) != kCanary) std::abort();
  }
}

std::mutex mutex;
std::unordered_map<void*, Mapping>& mappings() {
  static auto* all = new std::unordered_map<void*, Mapping>;  // tensors may outlive every other static object
  return *all;
}

void release(void* data) {
  if (data == nullptr) return;
  Mapping mapping;
  {
    const std::lock_guard lock(mutex);
    const auto found = mappings().find(data);
    mapping = found->second;
    mappings().erase(found);
  }
  check_canaries(mapping);
  munmap(mapping.base, mapping.length);
}

class GuardedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    if (bytes > (size_t{1} << 40)) throw std::bad_alloc();
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    const size_t pages = (rounded + page - 1) / page * page;
    void* base = mmap(nullptr, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) throw std::bad_alloc();
    Mapping mapping{static_cast<char*>(base), pages + page, nullptr, bytes, nullptr};
    mapping.end = mapping.base + pages;
    mapping.data = mapping.end - rounded;
    mprotect(mapping.end, page, PROT_NONE);
    std::memset(mapping.data + bytes, kCanary, rounded - bytes);
    const size_t before = std::min<size_t>(static_cast<size_t>(mapping.data - mapping.base), kAlignment);
    std::memset(mapping.data - before, kCanary, before);
    const std::lock_guard lock(mutex);
    mappings()[mapping.data] = mapping;
    return {mapping.data, mapping.data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

}  // namespace

void guard_tensor_memory() {
  static GuardedAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/255);
}

}  // namespace halftone::hostile
