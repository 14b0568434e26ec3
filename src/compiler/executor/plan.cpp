#include "compiler/executor/plan.h"

#include <c10/core/CPUAllocator.h>

namespace halftone::compiler {

Plan::~Plan() {
  for (auto& slot : idle_) delete slot.exchange(nullptr);
}

std::unique_ptr<Instance> Plan::take_instance() const {
  for (auto& slot : idle_) {
    if (slot.load(std::memory_order_relaxed) == nullptr) continue;
    if (Instance* found = slot.exchange(nullptr, std::memory_order_acquire))
      return std::unique_ptr<Instance>(found);
  }
  auto instance = std::make_unique<Instance>();
  instance->pointers.resize(buffers.size());
  instance->tensors.resize(buffers.size());
  instance->arena = c10::GetCPUAllocator()->allocate(arena_bytes);
  auto* base = static_cast<std::byte*>(instance->arena.get());
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].kind == Buffer::Kind::kArena) {
      instance->pointers[i] = base + buffers[i].offset;
    } else if (buffers[i].kind == Buffer::Kind::kConstant) {
      instance->pointers[i] = static_cast<std::byte*>(buffers[i].constant.data_ptr());
      instance->tensors[i] = buffers[i].constant;
    }
  }
  return instance;
}

void Plan::give_back(std::unique_ptr<Instance> instance) const {
  for (auto& slot : idle_) {
    Instance* expected = nullptr;
    if (slot.compare_exchange_strong(expected, instance.get(), std::memory_order_release,
                                     std::memory_order_relaxed)) {
      instance.release();
      return;
    }
  }
}

}  // namespace halftone::compiler
