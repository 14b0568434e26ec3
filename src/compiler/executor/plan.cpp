#include "compiler/executor/plan.h"

#include <c10/core/CPUAllocator.h>

#include "compiler/executor/memory/guarded_memory.h"
#include "compiler/executor/memory/memory.h"

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
  place_arena(*instance);
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].kind != Buffer::Kind::kConstant) continue;
    instance->pointers[i] = static_cast<std::byte*>(buffers[i].constant.data_ptr());
    instance->tensors[i] = buffers[i].constant;
  }
  return instance;
}

void Plan::place_arena(Instance& instance) const {
  const bool guarded = guarded_plan_memory();
  if (!guarded) instance.memory.push_back(c10::GetCPUAllocator()->allocate(arena_bytes));
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (buffer.kind != Buffer::Kind::kArena) continue;
    if (guarded) {
      instance.memory.push_back(
          guarded_allocate(buffer.bytes, buffer.scratch ? kArenaAlignment : c10::elementSize(buffer.dtype)));
    }
    auto* base = static_cast<std::byte*>(instance.memory.back().get());
    instance.pointers[i] = guarded ? base : base + buffer.offset;
  }
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
