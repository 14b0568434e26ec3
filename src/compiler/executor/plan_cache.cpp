#include "compiler/executor/plan_cache.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "graph/run/interpreter.h"

namespace halftone::compiler {

PlanEntry::PlanEntry() = default;
PlanEntry::~PlanEntry() = default;

namespace {

bool add_tensor(const at::Tensor& tensor, PlanKey& key) {
  if (!tensor.defined() || !tensor.device().is_cpu() || tensor.layout() != at::kStrided) return false;
  key.push_back(static_cast<int64_t>(tensor.scalar_type()));
  key.push_back(tensor.dim());
  key.insert(key.end(), tensor.sizes().begin(), tensor.sizes().end());
  key.insert(key.end(), tensor.strides().begin(), tensor.strides().end());
  return true;
}

bool add_number(const c10::IValue& value, PlanKey& key) {
  if (value.isInt() || value.isBool()) {
    key.push_back(value.isInt() ? -1 : -5);
    key.push_back(value.isInt() ? value.toInt() : int64_t{value.toBool()});
  } else if (value.isDouble()) {
    key.push_back(-2);
    key.push_back(std::bit_cast<int64_t>(value.toDouble()));
  } else if (value.isString()) {
    key.push_back(-3);
    key.push_back(static_cast<int64_t>(value.toStringRef().size()));
    for (const char each : value.toStringRef()) key.push_back(each);
  } else if (value.isNone()) {
    key.push_back(-4);
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool make_key(const CallInputs& inputs, int threads, PlanKey& key) {
  key.clear();
  key.push_back(threads);
  for (size_t i = 0; i < inputs.size(); ++i) {
    // Weights are compiled in; numbers are part of the key by value, tensors by their metadata alone.
    if (inputs.is_constant(i)) continue;
    const c10::IValue* number = inputs.number(i);
    if (!(number ? add_number(*number, key) : add_tensor(inputs.tensor(i), key))) return false;
  }
  return true;
}

std::shared_ptr<const PlanEntry> PlanCache::find(const PlanKey& key) const {
  const std::shared_ptr<const Table> table = table_.load(std::memory_order_acquire);
  const auto found = table->find(key);
  if (found == table->end()) return nullptr;
  found->second->last_used.store(++clock_, std::memory_order_relaxed);
  return found->second;
}

std::shared_ptr<const PlanEntry> PlanCache::insert(PlanKey key, std::shared_ptr<const PlanEntry> entry) {
  const std::lock_guard lock(insert_mutex_);
  // A new table for each insertion: calls read the old one without a lock, and it is freed after its last
  // reader.
  auto table = std::make_shared<Table>(*table_.load());
  // Another thread may have made the same plan meanwhile. The first one is kept.
  if (const auto found = table->find(key); found != table->end()) return found->second;
  while (table->size() >= limit_) {
    table->erase(std::min_element(table->begin(), table->end(), [](const auto& a, const auto& b) {
      return a.second->last_used < b.second->last_used;
    }));
  }
  entry->last_used = ++clock_;
  table->emplace(std::move(key), entry);
  table_.store(std::move(table), std::memory_order_release);
  return entry;
}

}  // namespace halftone::compiler
