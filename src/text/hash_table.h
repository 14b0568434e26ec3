// Hash tables of tokenizers: strings to ids and pairs to ids, flat, without an allocation at look-up.
//
// Their hashes depend on a number that differs from process to process, so that no file can be made of keys that collide.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace halftone {

uint64_t hash_seed();  ///< of this process

inline uint64_t mix_hash(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_bytes(std::string_view text, uint64_t seed) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15U;
  uint64_t hash = seed ^ text.size();
  const char* data = text.data();
  size_t left = text.size();
  for (; left > 8; left -= 8, data += 8) {
    uint64_t word = 0;
    std::memcpy(&word, data, 8);
    hash = mix_hash(hash ^ word, kOdd ^ seed);
  }
  uint64_t word = 0;
  std::memcpy(&word, data, left);
  return mix_hash(hash ^ word, kOdd ^ seed);
}

/// Numbers to numbers. Keys must not be kNoKey.
class NumberMap {
 public:
  static constexpr uint64_t kNoKey = UINT64_MAX;

  explicit NumberMap(size_t expected = 0);
  void set(uint64_t key, uint64_t value);  ///< a later value replaces an earlier one
  /// kNoKey if there is none.
  uint64_t get(uint64_t key) const {
    for (size_t at = slot_of(key);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return slot.value;
      if (slot.key == kNoKey) return kNoKey;
    }
  }

 private:
  struct Slot {
    uint64_t key = kNoKey, value = kNoKey;
  };
  size_t slot_of(uint64_t key) const { return mix_hash(key ^ seed_, 0x9E3779B97F4A7C15U) & mask_; }

  uint64_t seed_ = hash_seed();
  size_t mask_, count_ = 0;
  std::vector<Slot> slots_;
};

/// Strings to ids of 32 bits; keeps copies of the strings.
class StringMap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit StringMap(size_t expected = 0);
  bool add(std::string_view text, uint32_t id);  ///< false if the string is there already
  uint32_t find(std::string_view text) const {   ///< kNone if it is not there
    if (text.size() > longest_) return kNone;
    const uint64_t hash = hash_bytes(text, seed_);
    for (size_t at = hash & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.id == kNone) return kNone;
      if (slot.check == static_cast<uint32_t>(hash >> 32) && slot.length == text.size() &&
          std::memcmp(bytes_.data() + slot.offset, text.data(), text.size()) == 0)
        return slot.id;
    }
  }
  size_t longest() const { return longest_; }

 private:
  struct Slot {
    uint32_t check = 0, id = kNone;
    uint64_t offset = 0;
    size_t length = 0;
  };
  void grow();

  uint64_t seed_ = hash_seed();
  size_t mask_, count_ = 0, longest_ = 0;
  std::vector<Slot> slots_;
  std::string bytes_;
};

/// Strings by their bytes, for the longest or for all that a text begins with.
class Trie {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  bool add(std::string_view text, uint32_t id);  ///< false if the string is there already; it keeps its id
  bool empty() const { return ids_.size() == 1; }

  /// Calls found(length, id) for each string that stands at the start of `text`, shortest first.
  template <typename Found>
  void for_each_prefix(std::string_view text, Found&& found) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = child(node, text[i]);
      if (node == kNone) return;
      if (ids_[node] != kNone) found(i + 1, ids_[node]);
    }
  }

  struct Match {
    size_t length = 0;  ///< 0: none
    uint32_t id = kNone;
  };
  Match longest_prefix(std::string_view text) const;
  bool may_begin(char byte) const { return first_[static_cast<unsigned char>(byte)] != kNone; }

 private:
  uint32_t child(uint32_t node, char byte) const {
    const auto label = static_cast<unsigned char>(byte);
    if (node == 0) return first_[label];
    return static_cast<uint32_t>(children_.get(uint64_t{node} << 8 | label));
  }

  std::vector<uint32_t> ids_{kNone};
  std::vector<uint32_t> first_ = std::vector<uint32_t>(256, kNone);
  NumberMap children_;
};

}  // namespace halftone
