// Cutting a caller's scratch memory into aligned pieces: once to count, once to take.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/errors.h"

namespace halftone::kernels {

/// Take the same pieces in the same order with a null base to learn how many bytes are needed.
class Workspace {
 public:
  static constexpr size_t kAlignment = 64;

  /// Only counts.
  Workspace() = default;
  Workspace(void* base, size_t bytes) : base_(static_cast<char*>(base)), size_(bytes) {
    const size_t skip = (kAlignment - reinterpret_cast<uintptr_t>(base) % kAlignment) % kAlignment;
    used_ = skip;
  }

  /// `count` elements, aligned to 64 bytes; nullptr when only counting. Throws kInvalidArgument when the
  /// memory is used up.
  template <typename T>
  T* take(int64_t count) {
    const size_t at = used_;
    used_ += (static_cast<size_t>(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    if (base_ == nullptr) return nullptr;
    if (used_ > size_)
      fail(ErrorCode::kInvalidArgument, "workspace too small: {} bytes, at least {} needed", size_, used_);
    return reinterpret_cast<T*>(base_ + at);
  }

  /// Enough for any alignment of the base.
  size_t bytes_needed() const { return used_ + kAlignment; }

 private:
  char* base_ = nullptr;
  size_t size_ = 0;
  size_t used_ = 0;
};

}  // namespace halftone::kernels
