// Compiles under BaselineOptions: captured graphs, and C++ modules at their first call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/compat/baseline.h"
#include "halftone/compile/compile.h"
#include "halftone/compile/compile_module.h"
#include "halftone/compile/profile.h"

namespace halftone {

/// A setting that a search measured.
struct HALFTONE_API SearchCandidate {
  int threads = 0;                   ///< of a run, at most
  std::vector<std::string> without;  ///< passes that were left out, beside those that the options leave out
  double milliseconds = 0;           ///< the median in the last measurement that it took part in
  std::string failed;                ///< why it could not run; empty: it ran
  std::string name() const;          ///< "2 threads", "1 thread without join_linears"
};

/// The search at the first call of one shape.
struct HALFTONE_API SearchReport {
  std::string shape;                        ///< "f32[1, 128], i64[1]"
  std::vector<SearchCandidate> candidates;  ///< the first one: what would have run without a search
  size_t chosen = 0;                        ///< among the candidates
  double seconds = 0;                       ///< that the search took
  std::string not_searched;                 ///< why nothing was measured; empty: it was
  std::string to_text() const;              ///< a table of at most 100 columns
};

/// A graph compiled under the options. Immutable to its users and thread-safe, as CompiledGraph is; give it
/// to a Session, or call it with flat inputs.
class HALFTONE_API BaselineModel final : public GraphExecutor {
 public:
  ~BaselineModel() override;

  /// As CompiledGraph::run.
  std::vector<c10::IValue> run(const std::vector<c10::IValue>& inputs) const;
  std::vector<c10::IValue> run(const ExecutorCall& call) const override;
  const Graph& graph() const override;

  /// The compiled model for such inputs, after the search if there is one. Models that share a graph of the
  /// cache give the same one.
  std::shared_ptr<const CompiledGraph> compiled_for(const std::vector<c10::IValue>& inputs) const;
  /// Steps have readable names if the options ask for it.
  PlanReport report(const std::vector<c10::IValue>& inputs) const;
  /// The same for profile().
  Profile profile(const std::vector<c10::IValue>& inputs, const ProfileOptions& options = {}) const;
  /// In the order of first calls; at most recompile_limit of them: later shapes run as without a search.
  std::vector<SearchReport> searches() const;
  /// What the rewrites did, and what they could not: one sentence each.
  std::vector<std::string> notes() const;
  const BaselineOptions& options() const;

 private:
  friend std::shared_ptr<const BaselineModel> baseline_compile(std::shared_ptr<const GraphModule>,
                                                               const BaselineOptions&);
  struct State;
  explicit BaselineModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// compile() with these options: rewrites for options that are off, omitted passes, searches, the cache.
HALFTONE_API std::shared_ptr<const BaselineModel> baseline_compile(std::shared_ptr<const GraphModule> module,
                                                                   const BaselineOptions& options);

/// The options of compile(module) that mean the same. Their backend, "halftone_baseline", takes these options
/// by name.
HALFTONE_API CompileModuleOptions baseline_module_options(const BaselineOptions& options);

/// Names steps by what they do and where: "linear+gelu encoder.layer.0.intermediate.dense". `graph` is the
/// one that the report's model runs (CompiledGraph::graph()).
HALFTONE_API void use_readable_names(const Graph& graph, PlanReport& report);
HALFTONE_API void use_readable_names(const Graph& graph, Profile& profile);

}  // namespace halftone
