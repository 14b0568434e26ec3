#include "compat/search.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "base/errors.h"
#include "halftone/cli/table.h"
#include "halftone/tune/measure.h"

namespace halftone {

std::string SearchCandidate::name() const {
  std::string text = fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
  if (!without.empty()) text += fmt::format(" without {}", fmt::join(without, ", "));
  return text;
}

std::string SearchReport::to_text() const {
  if (!not_searched.empty()) return fmt::format("{}: not searched: {}\n", shape, not_searched);
  std::vector<Row> rows;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const SearchCandidate& candidate = candidates[i];
    const std::string ms = candidate.failed.empty() ? fmt::format("{:.4f}", candidate.milliseconds) : "–";
    rows.push_back({candidate.name(), ms, i == chosen ? "kept" : candidate.failed});
  }
  return fmt::format("{}: {} ways in {:.2f} s\n", shape, candidates.size(), seconds) +
         render_table({{"how", Align::kLeft, Cut::kMiddle, 20}, {"ms", Align::kRight}, {""}}, rows, 100);
}

namespace baseline {
namespace {

/// Of one comparison. A search has a few of them, at the first call of a shape only.
constexpr double kComparisonSeconds = 0.25;
constexpr int kMaxRounds = 3;

class ParameterSearch {
 public:
  explicit ParameterSearch(const SearchProblem& problem) : problem_(problem) {
    for (int threads = problem.threads; threads > 1; threads /= 2) threads_.push_back(threads);
    threads_.push_back(1);
    settings_.push_back({problem.threads, {}});
    models_.push_back(problem.start);
    report_.shape = problem.shape;
    report_.candidates.push_back({problem.threads, {}});
  }

  SearchResult search() {
    const auto begin = std::chrono::steady_clock::now();
    descend();
    if (problem_.all_directions) try_combinations();
    report_.chosen = best_;
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return {std::move(report_), models_[best_]};
  }

 private:
  void descend() {
    for (int round = 0; round < kMaxRounds; ++round) {
      const size_t before = best_;
      compare(with_other_threads());
      for (const std::string& pass : problem_.passes) compare({toggled(pass)});
      if (best_ == before) return;
    }
  }

  std::vector<SearchSetting> with_other_threads() const {
    std::vector<SearchSetting> others;
    for (const int threads : threads_) {
      SearchSetting other = settings_[best_];
      other.threads = threads;
      if (other != settings_[best_]) others.push_back(std::move(other));
    }
    return others;
  }

  SearchSetting toggled(const std::string& pass) const {
    SearchSetting other = settings_[best_];
    if (std::erase(other.without, pass) == 0) other.without.push_back(pass);
    std::sort(other.without.begin(), other.without.end());
    return other;
  }

  void try_combinations() {
    std::vector<SearchSetting> others;
    for (const int threads : threads_) {
      for (size_t bits = 0; bits < size_t{1} << problem_.passes.size(); ++bits) {
        SearchSetting setting{threads, {}};
        for (size_t i = 0; i < problem_.passes.size(); ++i)
          if ((bits >> i & 1) != 0) setting.without.push_back(problem_.passes[i]);
        std::sort(setting.without.begin(), setting.without.end());
        const bool tried = std::find(settings_.begin(), settings_.end(), setting) != settings_.end();
        if (!tried && others.size() < kMaxCombinations) others.push_back(std::move(setting));
      }
    }
    compare(others);
  }

  /// The index of its candidate; the model is made where it is new.
  size_t trial_of(const SearchSetting& setting) {
    const auto known = std::find(settings_.begin(), settings_.end(), setting);
    if (known != settings_.end()) return static_cast<size_t>(known - settings_.begin());
    settings_.push_back(setting);
    report_.candidates.push_back({setting.threads, setting.without});
    try {
      models_.push_back(problem_.make(setting));
    } catch (const Error& error) {
      models_.push_back(nullptr);
      report_.candidates.back().failed = error.what();
    }
    return settings_.size() - 1;
  }

  /// The present best against others. It stays unless it is slower beyond doubt.
  void compare(const std::vector<SearchSetting>& others) {
    std::vector<size_t> runners = {best_};
    for (const SearchSetting& setting : others) {
      const size_t candidate = trial_of(setting);
      if (report_.candidates[candidate].failed.empty()) runners.push_back(candidate);
    }
    if (runners.size() < 2) return;
    std::vector<TimedCandidate> timed_candidates;
    for (const size_t candidate : runners) {
      timed_candidates.push_back({.name = report_.candidates[candidate].name(),
                                  .run = [this, candidate] { problem_.run(*models_[candidate]); },
                                  .keep = candidate == best_});
    }
    MeasureOptions options;
    options.seconds = kComparisonSeconds;
    options.confidence = 0.02;
    options.drop_ratio = 1.2;
    options.clock = problem_.clock;
    const Measurements measured = measure(timed_candidates, options);
    if (measured.too_busy) return;  // nothing is known of them: the best so far stays
    for (size_t i = 0; i < runners.size(); ++i) {
      SearchCandidate& candidate = report_.candidates[runners[i]];
      candidate.milliseconds = measured.rows[i].median;
      if (measured.rows[i].failed) candidate.failed = measured.rows[i].reason;
    }
    if (measured.rows[measured.leader].failed) return;
    const bool slower = measured.rows[0].failed || measured.rows[0].relative_interval.low > 1;
    if (slower) best_ = runners[measured.leader];
  }

  const SearchProblem& problem_;
  std::vector<int> threads_;
  std::vector<SearchSetting> settings_;
  std::vector<std::shared_ptr<const CompiledGraph>> models_;  ///< nullptr: could not be made
  SearchReport report_;
  size_t best_ = 0;
};

}  // namespace

SearchResult search_parameters(const SearchProblem& problem) {
  return ParameterSearch(problem).search();
}

}  // namespace baseline
}  // namespace halftone
