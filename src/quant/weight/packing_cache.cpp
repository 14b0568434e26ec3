#include "quant/weight/packing_cache.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/SmallVector.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "base/errors.h"

namespace halftone {
namespace {

constexpr size_t kAlignment = 64;
// Dead entries are looked for at each insertion, and after so many lookups: a process that no longer packs
// still frees.
constexpr uint32_t kLookupsPerPurge = 1024;

bool aligned(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory) % kAlignment == 0;
}

// Tensors made in InferenceMode have no version.
uint32_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : tensor.unsafeGetTensorImpl()->version_counter().current_version();
}

c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.storage().unsafeGetStorageImpl();
}

/// Enough to know a tensor again. The weak handle keeps the storage's address from being reused, not its
/// memory.
class PartId {
 public:
  explicit PartId(const at::Tensor& part)
      : storage_(part.storage().getWeakStorageImpl()),
        address_(storage_of(part)),
        data_(part.const_data_ptr()),
        dtype_(part.scalar_type()),
        version_(version_of(part)),
        sizes_(part.sizes().begin(), part.sizes().end()),
        strides_(part.strides().begin(), part.strides().end()) {}

  bool matches(const at::Tensor& part) const {
    return address_ == storage_of(part) && data_ == part.const_data_ptr() && dtype_ == part.scalar_type() &&
           version_ == version_of(part) && part.sizes() == c10::IntArrayRef(sizes_) &&
           part.strides() == c10::IntArrayRef(strides_);
  }
  /// The same memory, read the same way, but written to in between.
  bool is_other_version_of(const PartId& other) const {
    return address_ == other.address_ && data_ == other.data_ && dtype_ == other.dtype_ &&
           sizes_ == other.sizes_ && strides_ == other.strides_ && version_ != other.version_;
  }
  bool is_of(const c10::StorageImpl* storage) const { return address_ == storage; }
  bool is_alive() const { return !storage_.expired(); }

 private:
  c10::weak_intrusive_ptr<c10::StorageImpl> storage_;
  const c10::StorageImpl* address_;
  const void* data_;
  at::ScalarType dtype_;
  uint32_t version_;
  c10::SmallVector<int64_t, 2> sizes_, strides_;
};

struct Entry {
  std::vector<PartId> parts;
  std::string layout_text;  // for blocks that were adopted
  PackLayout layout;        // for blocks that were made here
  at::Tensor bytes;
  std::optional<PackedTrust> doubt;  // how an adopted block is to be compared before it is used

  bool matches(const std::vector<at::Tensor>& given) const {
    size_t at = 0;
    for (const at::Tensor& part : given) {
      if (!part.defined()) continue;
      if (at == parts.size() || !parts[at].matches(part)) return false;
      ++at;
    }
    return at == parts.size();
  }
  bool is_replaced_by(const Entry& other) const {
    for (size_t i = 0; i < std::min(parts.size(), other.parts.size()); ++i) {
      if (parts[i].is_other_version_of(other.parts[i])) return true;
    }
    return false;
  }
  bool is_alive() const {
    return std::all_of(parts.begin(), parts.end(), [](const PartId& part) { return part.is_alive(); });
  }
  bool has_layout(const PackLayout& wanted) const {
    return layout_text.empty() ? layout == wanted : layout_text == wanted.to_string();
  }
  std::string text() const { return layout_text.empty() ? layout.to_string() : layout_text; }
};

class PackingCache {
 public:
  struct Found {
    at::Tensor bytes;
    std::optional<PackedTrust> doubt;
  };
  Found find(const std::vector<at::Tensor>& parts, const PackLayout& layout, size_t bytes) {
    if (++lookups_ % kLookupsPerPurge == 0) purge();
    const std::shared_lock lock(mutex_);
    const Entry* entry = find_entry(parts, layout, bytes);
    return entry != nullptr ? Found{entry->bytes, entry->doubt} : Found{};
  }

  /// The block was compared with its parts.
  void trust(const std::vector<at::Tensor>& parts, const at::Tensor& block) {
    const std::unique_lock lock(mutex_);
    const auto [first, last] = entries_.equal_range(storage_of(parts.at(0)));
    for (auto it = first; it != last; ++it) {
      if (it->second.bytes.is_same(block)) it->second.doubt.reset();
    }
  }

  /// The block to use: `bytes`, or that of another thread which was faster.
  at::Tensor insert(const std::vector<at::Tensor>& parts, const PackLayout& layout, const at::Tensor& bytes) {
    std::vector<Entry> dropped;  // destroyed after the lock: freeing a mapping may take long
    const std::unique_lock lock(mutex_);
    ++packed_;
    if (const Entry* entry = find_entry(parts, layout, bytes.nbytes())) return entry->bytes;
    emplace(parts, {ids_of(parts), {}, layout, bytes, {}}, dropped);
    return bytes;
  }

  void adopt(const std::vector<at::Tensor>& parts, PackedBlock block, PackedTrust trust) {
    std::vector<Entry> dropped;
    const std::unique_lock lock(mutex_);
    emplace(parts, {ids_of(parts), std::move(block.layout), {}, std::move(block.bytes), trust}, dropped);
  }

  std::vector<PackedBlock> blocks(const std::vector<at::Tensor>& parts) {
    std::vector<PackedBlock> found;
    const std::shared_lock lock(mutex_);
    const auto [first, last] = entries_.equal_range(storage_of(parts.at(0)));
    for (auto it = first; it != last; ++it) {
      if (it->second.matches(parts)) found.push_back({it->second.text(), it->second.bytes});
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.layout < b.layout; });
    return found;
  }

  void forget(const at::Tensor& part) {
    const c10::StorageImpl* storage = storage_of(part);
    drop([&](const Entry& entry) {
      return std::any_of(entry.parts.begin(), entry.parts.end(),
                         [&](const PartId& id) { return id.is_of(storage); });
    });
  }

  void purge() {
    drop([](const Entry& entry) { return !entry.is_alive(); });
  }

  PackingCacheStats stats() {
    purge();
    const std::shared_lock lock(mutex_);
    PackingCacheStats stats{entries_.size(), 0, packed_};
    for (const auto& [storage, entry] : entries_) stats.bytes += entry.bytes.nbytes();
    return stats;
  }

 private:
  static std::vector<PartId> ids_of(const std::vector<at::Tensor>& parts) {
    std::vector<PartId> ids;
    for (const at::Tensor& part : parts) {
      if (part.defined()) ids.emplace_back(part);
    }
    return ids;
  }

  const Entry* find_entry(const std::vector<at::Tensor>& parts, const PackLayout& layout,
                          size_t bytes) const {
    const auto [first, last] = entries_.equal_range(storage_of(parts.at(0)));
    for (auto it = first; it != last; ++it) {
      const Entry& entry = it->second;
      // An adopted one of another size is found too, and then refused.
      if ((entry.bytes.nbytes() == bytes || entry.doubt) && entry.matches(parts) && entry.has_layout(layout))
        return &entry;
    }
    return nullptr;
  }

  void emplace(const std::vector<at::Tensor>& parts, Entry entry, std::vector<Entry>& dropped) {
    collect([&](const Entry& old) { return !old.is_alive() || old.is_replaced_by(entry); }, dropped);
    entries_.emplace(storage_of(parts.at(0)), std::move(entry));
  }

  template <typename Predicate>
  void collect(Predicate wanted, std::vector<Entry>& dropped) {
    for (auto it = entries_.begin(); it != entries_.end();) {
      if (wanted(it->second)) {
        dropped.push_back(std::move(it->second));
        it = entries_.erase(it);
      } else {
        ++it;
      }
    }
  }

  template <typename Predicate>
  void drop(Predicate wanted) {
    std::vector<Entry> dropped;
    const std::unique_lock lock(mutex_);
    collect(wanted, dropped);
  }

  std::shared_mutex mutex_;
  std::unordered_multimap<const c10::StorageImpl*, Entry> entries_;  // by the first part's storage
  std::atomic<uint32_t> lookups_{0};
  size_t packed_ = 0;
};

// Never destroyed: tensors with static lifetime may outlive any order of destruction.
PackingCache& cache() {
  static auto* the_cache = new PackingCache;
  return *the_cache;
}

at::Tensor aligned_bytes(size_t bytes) {
  // c10's CPU allocator aligns to 64.
  at::Tensor block = at::detail::empty_cpu({static_cast<int64_t>(bytes)}, at::kByte);
  if (!aligned(block.const_data_ptr()))
    fail(ErrorCode::kInternal, "the CPU allocator did not align a packed block to 64");
  return block;
}

/// Compares a stored block with the parts: nothing in it is believed before.
void check_adopted(const PackLayout& layout, const at::Tensor& block, size_t bytes, PackFunction pack,
                   std::optional<CheckFunction> check) {
  if (block.nbytes() != bytes)
    fail(ErrorCode::kCorruptFile, "packed block {}: it has {} bytes, the weights give {}", layout.to_string(),
         block.nbytes(), bytes);
  if (check) {
    try {
      (*check)(block.const_data_ptr());
    } catch (const Error& error) {
      fail(ErrorCode::kCorruptFile, "packed block {}: {}", layout.to_string(), error.what());
    }
    return;
  }
  const at::Tensor made = aligned_bytes(bytes);
  pack(made.mutable_data_ptr());
  if (std::memcmp(made.const_data_ptr(), block.const_data_ptr(), bytes) != 0)
    fail(ErrorCode::kCorruptFile, "packed block {}: it is not what the weights give", layout.to_string());
}

}  // namespace

std::string PackLayout::to_string() const {
  return fmt::format("{}/v{}/{}x{}", kind, version, tile_n, tile_k);
}

at::Tensor packed_block(const std::vector<at::Tensor>& parts, const PackLayout& layout, size_t bytes,
                        PackFunction pack, std::optional<CheckFunction> check) {
  const auto found = cache().find(parts, layout, bytes);
  if (found.doubt) {
    const bool all = *found.doubt == PackedTrust::kCompare;
    // The header first, even if everything is compared: its message names the field.
    if (check) check_adopted(layout, found.bytes, bytes, pack, check);
    if (!check || all) check_adopted(layout, found.bytes, bytes, pack, std::nullopt);
    cache().trust(parts, found.bytes);
  }
  if (found.bytes.defined()) return found.bytes;
  const at::Tensor block = aligned_bytes(bytes);
  pack(block.mutable_data_ptr());
  return cache().insert(parts, layout, block);
}

std::vector<PackedBlock> packed_of(const std::vector<at::Tensor>& parts) {
  return cache().blocks(parts);
}

void adopt_packed(const std::vector<at::Tensor>& parts, PackedBlock block, PackedTrust trust) {
  const at::Tensor& bytes = block.bytes;
  if (!bytes.defined() || !bytes.is_cpu() || bytes.scalar_type() != at::kByte || bytes.dim() != 1 ||
      !bytes.is_contiguous() || !aligned(bytes.const_data_ptr())) {
    fail(ErrorCode::kInvalidArgument,
         "packed block \"{}\": must be contiguous uint8 on the CPU, aligned to {}", block.layout, kAlignment);
  }
  cache().adopt(parts, std::move(block), trust);
}

void forget_packed(const at::Tensor& part) {
  cache().forget(part);
}

PackingCacheStats packing_cache_stats() {
  return cache().stats();
}

}  // namespace halftone
