#include "text/hash_table.h"

#include <algorithm>
#include <bit>
#include <random>

namespace halftone {
namespace {

/// At most half of the slots are taken.
size_t slots_for(size_t count) {
  return std::bit_ceil(std::max<size_t>(count, 8) * 2);
}

}  // namespace

uint64_t hash_seed() {
  static const uint64_t kSeed = uint64_t{std::random_device{}()} << 32 | std::random_device{}();
  return kSeed;
}

NumberMap::NumberMap(size_t expected) : mask_(slots_for(expected) - 1), slots_(mask_ + 1) {}

void NumberMap::set(uint64_t key, uint64_t value) {
  if ((count_ + 1) * 2 > slots_.size()) {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    count_ = 0;
    for (const Slot& slot : old) {
      if (slot.key != kNoKey) set(slot.key, slot.value);
    }
  }
  size_t at = slot_of(key);
  while (slots_[at].key != kNoKey && slots_[at].key != key) at = (at + 1) & mask_;
  count_ += slots_[at].key == kNoKey ? 1 : 0;
  slots_[at] = {key, value};
}

StringMap::StringMap(size_t expected) : mask_(slots_for(expected) - 1), slots_(mask_ + 1) {}

void StringMap::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  mask_ = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id == kNone) continue;
    size_t at = hash_bytes(std::string_view(bytes_).substr(slot.offset, slot.length), seed_) & mask_;
    while (slots_[at].id != kNone) at = (at + 1) & mask_;
    slots_[at] = slot;
  }
}

bool StringMap::add(std::string_view text, uint32_t id) {
  if (find(text) != kNone) return false;
  if ((count_ + 1) * 2 > slots_.size()) grow();
  const uint64_t hash = hash_bytes(text, seed_);
  size_t at = hash & mask_;
  while (slots_[at].id != kNone) at = (at + 1) & mask_;
  slots_[at] = {static_cast<uint32_t>(hash >> 32), id, bytes_.size(), text.size()};
  bytes_ += text;
  longest_ = std::max(longest_, text.size());
  ++count_;
  return true;
}

bool Trie::add(std::string_view text, uint32_t id) {
  uint32_t node = 0;
  for (const char byte : text) {
    uint32_t next = child(node, byte);
    if (next == kNone) {
      next = static_cast<uint32_t>(ids_.size());
      ids_.push_back(kNone);
      const auto label = static_cast<unsigned char>(byte);
      if (node == 0) {
        first_[label] = next;
      } else {
        children_.set(uint64_t{node} << 8 | label, next);
      }
    }
    node = next;
  }
  if (node == 0 || ids_[node] != kNone) return false;
  ids_[node] = id;
  return true;
}

Trie::Match Trie::longest_prefix(std::string_view text) const {
  Match best;
  for_each_prefix(text, [&](size_t length, uint32_t id) { best = {length, id}; });
  return best;
}

}  // namespace halftone
