// The plans of a compiled model, one for each shape that came along.
#pragma once

#include <ATen/core/ivalue.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler/executor/plan.h"
#include "compiler/executor/run_plan.h"

namespace halftone {
class Interpreter;
}

namespace halftone::compiler {

/// A plan, or why there is none.
struct PlanEntry {
  PlanEntry();
  ~PlanEntry();
  std::unique_ptr<Plan> plan;
  std::unique_ptr<Interpreter> interpreter;
  std::string why_interpreted;
  mutable std::atomic<uint64_t> last_used{0};
};

/// Everything that a plan depends on: sizes, strides and dtypes of the tensors, the numbers, the number of
/// threads.
using PlanKey = std::vector<int64_t>;
/// Into `key`, whose memory is used again. False if an input is something that no plan can be made for.
bool make_key(const CallInputs& inputs, int threads, PlanKey& key);

/// Thread-safe; finding takes no lock. The least recently used entry is dropped.
class PlanCache {
 public:
  explicit PlanCache(size_t limit)
      : limit_(limit == 0 ? 1 : limit), table_(std::make_shared<const Table>()) {}
  std::shared_ptr<const PlanEntry> find(const PlanKey& key) const;
  /// The entry that is there from now on: another thread's, if it came first.
  std::shared_ptr<const PlanEntry> insert(PlanKey key, std::shared_ptr<const PlanEntry> entry);
  size_t size() const { return table_.load()->size(); }

 private:
  using Table = std::map<PlanKey, std::shared_ptr<const PlanEntry>>;
  size_t limit_;
  mutable std::atomic<uint64_t> clock_{0};
  std::atomic<std::shared_ptr<const Table>> table_;
  std::mutex insert_mutex_;
};

}  // namespace halftone::compiler
