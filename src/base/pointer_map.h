// A hash table from pointers to small values, in one block of memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace halftone {

/// For tables with an entry for each value of a graph, made and thrown away in every pass. std::unordered_map
/// allocates each entry: for 10,000 nodes that leaves the heap in pieces, and compiling 200 layers took six
/// times as long as 50. Open addressing with linear probing, at most half full. Entries cannot be erased; null
/// is no key. Pointers into the table are valid until the next insertion.
template <typename T>
class PointerMap {
 public:
  void reserve(size_t count) {
    if (2 * count > slots_.size()) rehash(std::bit_ceil(2 * count));
  }
  size_t size() const { return size_; }

  /// nullptr if there is none.
  const T* find(const void* key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place_of(key)];
    return slot.key == nullptr ? nullptr : &slot.value;
  }
  T* find(const void* key) { return const_cast<T*>(std::as_const(*this).find(key)); }
  bool contains(const void* key) const { return find(key) != nullptr; }
  const T& at(const void* key) const {
    if (const T* found = find(key)) return *found;
    throw std::out_of_range("PointerMap: no such key");
  }

  /// False if the key is there already; its value stays then.
  bool emplace(const void* key, T value) {
    if (key == nullptr) throw std::invalid_argument("PointerMap: the key is null");
    reserve(size_ + 1);
    Slot& slot = slots_[place_of(key)];
    if (slot.key != nullptr) return false;
    slot = {key, std::move(value)};
    ++size_;
    return true;
  }
  T& operator[](const void* key) {
    emplace(key, T());
    return *find(key);
  }

 private:
  struct Slot {
    const void* key = nullptr;
    T value{};
  };

  /// Where the key is, or the free slot where it belongs.
  size_t place_of(const void* key) const {
    // Multiplying by 2^64 / golden ratio spreads addresses, which are multiples of 16, over the upper bits.
    const uint64_t hash = reinterpret_cast<uintptr_t>(key) * 0x9E3779B97F4A7C15ULL;
    const size_t mask = slots_.size() - 1;
    size_t place = static_cast<size_t>(hash >> 32) & mask;
    while (slots_[place].key != nullptr && slots_[place].key != key) place = (place + 1) & mask;
    return place;
  }

  void rehash(size_t count) {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(count < 16 ? 16 : count));
    for (Slot& slot : old) {
      if (slot.key != nullptr) slots_[place_of(slot.key)] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;  // a power of two of them, or none
  size_t size_ = 0;
};

}  // namespace halftone
