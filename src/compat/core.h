// A graph compiled under options, with what the search found for each shape. Shared by the models of equal
// graphs where the cache is on.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "halftone/compat/baseline_compile.h"

namespace halftone::baseline {

/// Thread-safe.
class Core {
 public:
  Core(std::shared_ptr<const GraphModule> module, const BaselineOptions& options);

  /// What serves these inputs; if a search is asked for and they are of a new shape, after it. `run` makes
  /// one call.
  using RunOnce = std::function<void(const CompiledGraph&)>;
  std::shared_ptr<const CompiledGraph> model_for(const std::vector<c10::IValue>& inputs, const RunOnce& run);
  const std::shared_ptr<const CompiledGraph>& start() const { return start_; }
  const std::shared_ptr<const GraphModule>& module() const { return module_; }
  const std::vector<std::string>& notes() const { return notes_; }
  std::vector<SearchReport> searches() const;

  /// Whether the weights that it was made from are still what they were: changes in place are seen by their
  /// versions.
  bool unchanged() const;
  /// False if such changes cannot be seen.
  bool can_be_shared() const { return can_be_shared_; }

 private:
  using ShapeKey = std::vector<int64_t>;
  std::shared_ptr<const CompiledGraph> find(const ShapeKey& key) const;
  std::shared_ptr<const CompiledGraph> search(const std::vector<c10::IValue>& inputs, const RunOnce& run);
  std::vector<std::string> optional_passes() const;

  std::shared_ptr<const GraphModule> module_;  ///< the caller's
  std::shared_ptr<const GraphModule> rewritten_;
  const BaselineOptions options_;
  std::vector<std::string> notes_;
  CompileOptions compile_options_;
  std::shared_ptr<const CompiledGraph> start_;
  std::string why_no_search_;
  std::vector<std::pair<at::Tensor, uint32_t>> versions_;
  bool can_be_shared_ = true;

  std::mutex searching_;  ///< one search at a time
  mutable std::shared_mutex mutex_;
  std::map<ShapeKey, std::shared_ptr<const CompiledGraph>> chosen_;
  std::vector<SearchReport> reports_;
};

/// A new one, or with graph_cache the one of an equal graph with equal weights and options that still lives.
std::shared_ptr<Core> core_for(const std::shared_ptr<const GraphModule>& module,
                               const BaselineOptions& options);

}  // namespace halftone::baseline
