#include "capture/module/tracing/snapshots.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/module.h>

#include <cstring>

namespace halftone {

uint64_t fingerprint(const c10::Storage& storage) {
  const auto* bytes = static_cast<const char*>(storage.device().is_cpu() ? storage.data() : nullptr);
  const size_t size = bytes ? storage.nbytes() : 0;
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;
  constexpr size_t kLanes = 4;  // independent sums, so that multiplications overlap
  uint64_t lanes[kLanes] = {size, 1, 2, 3};
  size_t i = 0;
  for (; i + 8 * kLanes <= size; i += 8 * kLanes) {
    uint64_t words[kLanes];
    std::memcpy(words, bytes + i, sizeof words);
    for (size_t k = 0; k < kLanes; ++k) lanes[k] = (lanes[k] ^ words[k]) * kFactor;
  }
  for (; i < size; ++i) lanes[0] = (lanes[0] ^ static_cast<unsigned char>(bytes[i])) * kFactor;
  uint64_t sum = 0;
  for (const uint64_t lane : lanes) sum = (sum ^ lane ^ (lane >> 29)) * kFactor;
  return sum;
}

void MemorySnapshots::keep(const c10::Storage& storage) {
  if (!storage.device().is_cpu() || !storage.data()) return;
  const auto [entry, added] = copies_.try_emplace(storage.unsafeGetStorageImpl());
  if (!added) return;
  const auto* bytes = static_cast<const std::byte*>(storage.data());
  entry->second = {storage, {bytes, bytes + storage.nbytes()}};
}

void MemorySnapshots::restore() {
  for (auto& [storage, copy] : copies_) {
    // Untouched pages stay untouched: they may be those of a mapped file.
    void* bytes = copy.storage.mutable_data();
    const size_t size = std::min(copy.bytes.size(), copy.storage.nbytes());
    if (std::memcmp(bytes, copy.bytes.data(), size) != 0) std::memcpy(bytes, copy.bytes.data(), size);
  }
  copies_.clear();
}

ModuleSnapshot::ModuleSnapshot(torch::nn::Module* module) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  {
    const std::lock_guard lock(generator.mutex());
    random_state_ = generator.get_state();
  }
  if (!module) return;
  for (const at::Tensor& buffer : module->buffers()) {
    if (buffer.defined() && buffer.has_storage()) buffers_.keep(buffer.storage());
  }
  for (const at::Tensor& parameter : module->parameters()) {
    if (parameter.defined()) parameters_.push_back({parameter, parameter.requires_grad(), parameter.grad()});
  }
  remember_training(*module);
}

// Not modules(): that asks for a module in a shared pointer.
void ModuleSnapshot::remember_training(torch::nn::Module& module) {
  training_.emplace_back(&module, module.is_training());
  for (const auto& child : module.children()) {
    if (child) remember_training(*child);
  }
}

void ModuleSnapshot::restore_random_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(random_state_);
}

void ModuleSnapshot::restore() {
  buffers_.restore();
  for (Flags& flags : parameters_) {
    if (flags.parameter.requires_grad() != flags.requires_grad)
      flags.parameter.requires_grad_(flags.requires_grad);
    if (!flags.parameter.grad().is_same(flags.grad)) flags.parameter.mutable_grad() = flags.grad;
  }
  // Outer modules first: train() of a module sets those inside it too.
  for (const auto& [part, training] : training_) {
    if (part->is_training() != training) part->train(training);
  }
}

}  // namespace halftone
