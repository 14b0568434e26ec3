#include "harness/baseline/search.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "base/errors.h"
#include "halftone/measure.h"
#include "halftone/table.h"

namespace halftone {

std::string SearchTrial::name() const {
  std::string text = fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
  if (!without.empty()) text += fmt::format(" without {}", fmt::join(without, ", "));
  return text;
}

std::string SearchReport::to_text() const {
  if (!not_searched.empty()) return fmt::format("{}: not searched: {}\n", shape, not_searched);
  std::vector<Row> rows;
  for (size_t i = 0; i < trials.size(); ++i) {
    const SearchTrial& trial = trials[i];
    const std::string ms = trial.failed.empty() ? fmt::format("{:.4f}", trial.milliseconds) : "–";
    rows.push_back({trial.name(), ms, i == chosen ? "kept" : trial.failed});
  }
  return fmt::format("{}: {} ways in {:.2f} s\n", shape, trials.size(), seconds) +
         render_table({{"how", Align::kLeft, Cut::kMiddle, 20}, {"ms", Align::kRight}, {""}}, rows, 100);
}

namespace baseline {
namespace {

/// Of one race. A search has a few of them, at the first call of a shape only.
constexpr double kRaceSeconds = 0.25;
constexpr int kMostRounds = 3;

class ParameterSearch {
 public:
  explicit ParameterSearch(const SearchProblem& problem) : problem_(problem) {
    for (int threads = problem.threads; threads > 1; threads /= 2) threads_.push_back(threads);
    threads_.push_back(1);
    settings_.push_back({problem.threads, {}});
    models_.push_back(problem.start);
    report_.shape = problem.shape;
    report_.trials.push_back({problem.threads, {}});
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
    for (int round = 0; round < kMostRounds; ++round) {
      const size_t before = best_;
      race(with_other_threads());
      for (const std::string& pass : problem_.passes) race({toggled(pass)});
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
        if (!tried && others.size() < kMostCombinations) others.push_back(std::move(setting));
      }
    }
    race(others);
  }

  /// The index of its trial; the model is made where it is new.
  size_t trial_of(const SearchSetting& setting) {
    const auto known = std::find(settings_.begin(), settings_.end(), setting);
    if (known != settings_.end()) return static_cast<size_t>(known - settings_.begin());
    settings_.push_back(setting);
    report_.trials.push_back({setting.threads, setting.without});
    try {
      models_.push_back(problem_.make(setting));
    } catch (const Error& error) {
      models_.push_back(nullptr);
      report_.trials.back().failed = error.what();
    }
    return settings_.size() - 1;
  }

  /// The present best against others. It stays unless it is slower beyond doubt.
  void race(const std::vector<SearchSetting>& others) {
    std::vector<size_t> runners = {best_};
    for (const SearchSetting& setting : others) {
      const size_t trial = trial_of(setting);
      if (report_.trials[trial].failed.empty()) runners.push_back(trial);
    }
    if (runners.size() < 2) return;
    std::vector<Contestant> contestants;
    for (const size_t trial : runners) {
      contestants.push_back({.name = report_.trials[trial].name(),
                             .run = [this, trial] { problem_.run(*models_[trial]); },
                             .keep = trial == best_});
    }
    MeasureOptions options;
    options.seconds = kRaceSeconds;
    options.confidence = 0.02;
    options.drop_ratio = 1.2;
    options.clock = problem_.clock;
    const Measurements measured = measure(contestants, options);
    if (measured.too_busy) return;  // nothing is known of them: the best so far stays
    for (size_t i = 0; i < runners.size(); ++i) {
      SearchTrial& trial = report_.trials[runners[i]];
      trial.milliseconds = measured.rows[i].median;
      if (measured.rows[i].failed) trial.failed = measured.rows[i].reason;
    }
    if (measured.rows[measured.leader].failed) return;
    const bool slower = measured.rows[0].failed || measured.rows[0].relative_interval.low > 1;
    if (slower) best_ = runners[measured.leader];
  }

  const SearchProblem& problem_;
  std::vector<int> threads_;
  std::vector<SearchSetting> settings_;
  std::vector<std::shared_ptr<const CompiledModel>> models_;  ///< nullptr: could not be made
  SearchReport report_;
  size_t best_ = 0;
};

}  // namespace

SearchResult search_parameters(const SearchProblem& problem) {
  return ParameterSearch(problem).search();
}

}  // namespace baseline
}  // namespace halftone
