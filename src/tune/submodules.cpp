#include "tune/submodules.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <utility>

#include "backend/lifecycle/backend_access.h"
#include "base/errors.h"
#include "base/log.h"
#include "tune/candidate_run.h"
#include "tune/setup.h"

namespace halftone {
namespace {

using Clock = std::chrono::steady_clock;

// Of the time limit: the search may take this much, what it found is measured with the rest.
constexpr double kSearchShare = 0.6;
constexpr double kDropRatio = 1.1;
// A config that gains less than this is not worth the loss of accuracy.
constexpr double kMinGain = 0.99;

std::vector<QuantConfig> usual_configs() {
  return {"int8wo", "int8dq-7bit", "int8dq", "int4wo"};
}

bool is_below(const std::string& layer, const std::string& submodule) {
  return submodule.empty() || layer == submodule || layer.starts_with(submodule + ".");
}

class SubmoduleSearch {
 public:
  SubmoduleSearch(std::shared_ptr<const GraphModule> graph, const TuningSetup& setup,
                  const TuneOptions& options, std::vector<QuantConfig> configs)
      : graph_(std::move(graph)),
        setup_(setup),
        options_(options),
        configs_(std::move(configs)),
        layers_(quantizable_layers(*graph_)),
        deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(options.time_limit * kSearchShare))) {
    CandidateRun eager({"eager", eager_backend_recipe()});
    eager.build(graph_, setup_.layout.build, options_.cache_dir);
    for (const Sample& sample : setup_.layout.validation) expected_.push_back(eager.answers(sample));
  }

  LayerwiseConfig run(std::vector<SubmoduleReport> submodules) {
    std::erase_if(submodules, [](const SubmoduleReport& each) { return !each.worth; });
    std::stable_sort(submodules.begin(), submodules.end(),
                     [](const SubmoduleReport& a, const SubmoduleReport& b) { return a.share > b.share; });
    int64_t done = 0;
    size_t left = submodules.size();
    for (const SubmoduleReport& each : submodules) {
      if (options_.progress)
        options_.progress(done++, static_cast<int64_t>(submodules.size()) + 1, each.name);
      const double seconds = std::chrono::duration<double>(deadline_ - Clock::now()).count();
      if (seconds <= 0) {
        log(LogLevel::kWarning, "submodule {}: stays as it is, the time limit left no time for it",
            each.name);
        continue;
      }
      try_configs(each, seconds / static_cast<double>(left--));
    }
    return chosen_;
  }

 private:
  std::string pattern_of(const SubmoduleReport& submodule) const {
    std::vector<std::string> names;
    for (const LayerReport& layer : layers_) {
      if (is_below(layer.layer.name, submodule.name)) names.push_back(layer.layer.name);
    }
    return exact_pattern(names);
  }

  /// Builds and validates; false, with a line in the log, where the config is not for this submodule.
  bool is_valid(CandidateRun& candidate, const std::string& submodule) const {
    try {
      candidate.build(graph_, setup_.layout.build, options_.cache_dir);
      candidate.validate(setup_.layout.validation, expected_, options_.metric);
    } catch (const std::exception& error) {
      log(LogLevel::kInfo, "submodule {}: {}: {}", submodule, candidate.row.name, short_message(error));
      return false;
    }
    const Accuracy& accuracy = *candidate.row.accuracy;
    if (accuracy.nans == 0 && accuracy.min_cosine >= setup_.min_cosine) return true;
    log(LogLevel::kInfo, "submodule {}: {}: cosine {:.5f}", submodule, candidate.row.name,
        accuracy.min_cosine);
    return false;
  }

  /// The whole model with what was chosen so far, and with each config on this submodule too, side by side.
  void try_configs(const SubmoduleReport& submodule, double seconds) {
    const std::string pattern = pattern_of(submodule);
    std::list<CandidateRun> candidates;
    std::vector<LayerwiseConfig> variants{chosen_};
    for (const QuantConfig& config : configs_) {
      variants.push_back(chosen_);
      variants.back().emplace_back(pattern, config);
    }
    std::vector<size_t> running;
    for (size_t i = 0; i < variants.size(); ++i) {
      candidates.emplace_back(TuneCandidate{i == 0 ? "as before" : configs_[i - 1].describe(),
                                            layerwise_backend_recipe(variants[i])});
      if (is_valid(candidates.back(), submodule.name)) {
        running.push_back(i);
      } else {
        candidates.pop_back();
      }
    }
    // Without the model as it was there is nothing to gain on.
    if (running.empty() || running.front() != 0) return;
    const size_t best = fastest(candidates, seconds);
    if (running[best] != 0) chosen_ = variants[running[best]];
  }

  /// The index of the fastest one by the sum of its logs over the shapes; 0 unless another gains enough.
  size_t fastest(std::list<CandidateRun>& candidates, double seconds) const {
    std::vector<double> ratios(candidates.size(), 1);
    const auto& calls = setup_.layout.shape_calls;
    for (const Sample& call : calls) {
      std::vector<TimedCandidate> timed_candidates;
      for (CandidateRun& candidate : candidates) timed_candidates.push_back(candidate.timed_candidate(call));
      timed_candidates.front().always = true;
      MeasureOptions options;
      options.seconds = seconds / 2 / static_cast<double>(calls.size());
      options.confidence = options_.confidence;
      options.drop_ratio = kDropRatio;
      const Measurements measured = measure(timed_candidates, options);
      require_quiet(measured);
      for (size_t i = 0; i < ratios.size(); ++i)
        ratios[i] *= measured.rows[i].failed ? 1e9 : paired_ratio(measured.rows[i], measured.rows[0]);
    }
    const auto best = std::min_element(ratios.begin(), ratios.end());
    return *best < kMinGain ? static_cast<size_t>(best - ratios.begin()) : 0;
  }

  std::shared_ptr<const GraphModule> graph_;
  const TuningSetup& setup_;
  const TuneOptions& options_;
  std::vector<QuantConfig> configs_;
  std::vector<LayerReport> layers_;
  Clock::time_point deadline_;
  std::vector<std::vector<c10::IValue>> expected_;
  LayerwiseConfig chosen_;
};

}  // namespace

std::string exact_pattern(const std::vector<std::string>& names) {
  constexpr std::string_view kSpecial = R"(\^$.|?*+()[]{})";
  std::string pattern;
  for (const std::string& name : names) {
    if (!pattern.empty()) pattern += '|';
    for (const char letter : name) {
      if (kSpecial.find(letter) != std::string_view::npos) pattern += '\\';
      pattern += letter;
    }
  }
  return pattern;
}

SubmoduleTuneResult tune_submodules(const ModelSource& model, const Samples& samples,
                                    const Strategy& strategy, const TuneOptions& options,
                                    const SubmoduleTuneOptions& submodules) {
  const auto start = Clock::now();
  const TuningSetup setup = set_up(model, samples, strategy, options);
  const Backend captured = captured_backend(model, setup, options.device);
  const auto graph = BackendAccess::content(captured).original;
  InspectReport inspected = inspect(graph, Samples(setup.layout.calls), submodules.inspect);
  SubmoduleSearch search(graph, setup, options,
                         submodules.configs.empty() ? usual_configs() : submodules.configs);
  LayerwiseConfig chosen = search.run(inspected.submodules);
  TuneOptions rest = options;
  rest.candidates.clear();
  rest.candidates.push_back({"eager", eager_backend_recipe()});
  rest.candidates.push_back({"fp32", halftone_backend_recipe()});
  if (!chosen.empty()) rest.candidates.push_back({"per-submodule", layerwise_backend_recipe(chosen)});
  const auto seconds = [start] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  rest.time_limit = std::max(1.0, options.time_limit - seconds());
  // The search asked for more than one candidate; the strategy chooses among what is left of them.
  Strategy last = strategy;
  last.only.clear();
  TuneResult result = tune_captured(captured, model, samples, last, rest);
  result.report.seconds = seconds();  // the search was most of it
  return {std::move(result), std::move(inspected), std::move(chosen)};
}

}  // namespace halftone
