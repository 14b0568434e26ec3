// State that a capture may change and must restore: memory of tensors, random state, flags of parameters and
// modules.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace torch::nn {
class Module;
}

namespace halftone {

/// A checksum of the storage's bytes: a write past the dispatcher (data_ptr, accessors) changes it.
uint64_t fingerprint(const c10::Storage& storage);

/// Copies of storages' bytes, taken before their first change.
class MemorySnapshots {
 public:
  void keep(const c10::Storage& storage);
  /// Puts everything back and forgets it.
  void restore();

 private:
  struct Copy {
    c10::Storage storage;
    std::vector<std::byte> bytes;
  };
  std::unordered_map<const c10::StorageImpl*, Copy> copies_;
};

/// Buffers, flags and gradients of a module and the random state of the CPU, as they are now.
class ModuleSnapshot {
 public:
  explicit ModuleSnapshot(torch::nn::Module* module);  ///< nullptr: only the random state
  void restore();
  /// Apart, because other threads may draw meanwhile: only if the model did.
  void restore_random_state();

 private:
  void remember_training(torch::nn::Module& module);
  struct Flags {
    at::Tensor parameter;
    bool requires_grad = false;
    at::Tensor grad;
  };
  at::Tensor random_state_;
  MemorySnapshots buffers_;
  std::vector<Flags> parameters_;
  std::vector<std::pair<torch::nn::Module*, bool>> training_;
};

}  // namespace halftone
