#include "compiler/executor/plan_cache.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/errors.h"
#include "graph/interpreter.h"

namespace halftone::compiler {

PlanEntry::PlanEntry() = default;
PlanEntry::~PlanEntry() = default;

PlanKey make_key(const std::vector<c10::IValue>& inputs, const std::vector<bool>& is_constant, int threads) {
  PlanKey key{threads};
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (is_constant[i]) continue;
    const c10::IValue& value = inputs[i];
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      key.push_back(static_cast<int64_t>(tensor.scalar_type()));
      key.push_back(tensor.dim());
      key.insert(key.end(), tensor.sizes().begin(), tensor.sizes().end());
      key.insert(key.end(), tensor.strides().begin(), tensor.strides().end());
    } else if (value.isInt() || value.isBool()) {
      key.push_back(-1);
      key.push_back(value.isInt() ? value.toInt() : int64_t{value.toBool()});
    } else if (value.isDouble()) {
      key.push_back(-2);
      key.push_back(std::bit_cast<int64_t>(value.toDouble()));
    } else if (value.isString()) {
      key.push_back(-3);
      for (const char each : value.toStringRef()) key.push_back(each);
      key.push_back(-3);
    } else if (value.isNone()) {
      key.push_back(-4);
    } else {
      fail(ErrorCode::kUnsupported, "input {} is a {}, which no plan can be made for", i, value.tagKind());
    }
  }
  return key;
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
  auto table = std::make_shared<Table>(*table_.load());
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
