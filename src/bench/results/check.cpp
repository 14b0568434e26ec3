// check_bench(): results against expectations.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/errors.h"
#include "bench/results/row_key.h"
#include "bench/results/text.h"
#include "halftone/bench/results.h"
#include "halftone/cli/message.h"
#include "halftone/cli/table.h"

namespace halftone {
namespace {

constexpr int kWidth = 100;

struct KindText {
  std::string_view name;
  BenchSeverity severity;
};
// In the order of BenchFindingKind.
constexpr std::array<KindText, 9> kKinds = {{
    {"accuracy worse", BenchSeverity::kRegression},
    {"accuracy better", BenchSeverity::kOutdated},
    {"slower", BenchSeverity::kRegression},
    {"more unsupported", BenchSeverity::kRegression},
    {"missing", BenchSeverity::kRegression},
    {"faster", BenchSeverity::kNote},
    {"fewer unsupported", BenchSeverity::kNote},
    {"new", BenchSeverity::kNote},
    {"duplicate", BenchSeverity::kNote},
}};

class Checker {
 public:
  explicit Checker(const BenchCheckOptions& options) : options_(options) {}

  void add(BenchFindingKind kind, const BenchRow& row, std::string message) {
    const BenchSeverity severity = kKinds.at(static_cast<size_t>(kind)).severity;
    check_.findings.push_back({kind, severity, describe_key(row), std::move(message)});
  }

  void compare(const BenchRow& expected, const BenchRow& now) {
    ++check_.compared;
    compare_accuracy(expected, now);
    compare_speed(expected, now);
    compare_unsupported(expected, now);
  }

  BenchCheck take() {
    std::ranges::stable_sort(check_.findings, [](const BenchFinding& a, const BenchFinding& b) {
      return a.severity > b.severity;
    });
    return std::move(check_);
  }

 private:
  void compare_accuracy(const BenchRow& expected, const BenchRow& now) {
    if (expected.accuracy == now.accuracy) return;
    const bool better =
        accuracy_holds(now.accuracy) && !now.accuracy.empty() && !accuracy_holds(expected.accuracy);
    const auto word = [](const std::string& accuracy) {
      return accuracy.empty() ? std::string("(not measured)") : accuracy;
    };
    std::string message = fmt::format("{}, expected {}", word(now.accuracy), word(expected.accuracy));
    if (!now.error.empty()) message += ": " + terminal_text(now.error, 120);
    if (expected.accuracy.empty()) {
      // Nothing was expected of it; a failure is one all the same.
      add(accuracy_holds(now.accuracy) ? BenchFindingKind::kAccuracyBetter : BenchFindingKind::kAccuracyWorse,
          now, message);
      return;
    }
    add(better ? BenchFindingKind::kAccuracyBetter : BenchFindingKind::kAccuracyWorse, now, message);
  }

  void compare_speed(const BenchRow& expected, const BenchRow& now) {
    if (!options_.timed || !expected.speedup || std::isnan(*expected.speedup)) return;
    if (!now.speedup || std::isnan(*now.speedup)) {
      const std::string why = now.error.empty() ? "" : ": " + terminal_text(now.error, 120);
      add(BenchFindingKind::kSlower, now,
          fmt::format("no speed-up, expected {:.3f}x{}", *expected.speedup, why));
      return;
    }
    std::string message = fmt::format("{:.3f}x, expected {:.3f}x ({:+.1f} %, {:.0f} % allowed)", *now.speedup,
                                      *expected.speedup, (*now.speedup / *expected.speedup - 1) * 100,
                                      options_.tolerance * 100);
    if (now.spread) message += fmt::format(", spread {:.1f} %", *now.spread * 100);
    if (*now.speedup < *expected.speedup * (1 - options_.tolerance)) {
      add(BenchFindingKind::kSlower, now, std::move(message));
    } else if (*now.speedup > *expected.speedup * (1 + options_.tolerance)) {
      add(BenchFindingKind::kFaster, now, std::move(message));
    }
  }

  void compare_unsupported(const BenchRow& expected, const BenchRow& now) {
    if (!expected.unsupported_ops || expected.unsupported_ops == now.unsupported_ops) return;
    if (!now.unsupported_ops) {
      // A row that failed counted nothing; its accuracy says so already.
      if (accuracy_holds(now.accuracy))
        add(BenchFindingKind::kMoreUnsupported, now, "no count of unsupported operators");
      return;
    }
    const bool more = *now.unsupported_ops > *expected.unsupported_ops;
    add(more ? BenchFindingKind::kMoreUnsupported : BenchFindingKind::kFewerUnsupported, now,
        fmt::format("{} unsupported operators, expected {}", *now.unsupported_ops,
                    *expected.unsupported_ops));
  }

  const BenchCheckOptions& options_;
  BenchCheck check_;
};

void check_options(const BenchCheckOptions& options) {
  if (options.tolerance >= 0 && options.tolerance < 1) return;
  fail(ErrorCode::kInvalidArgument, "tolerance {}: must be at least 0 and less than 1", options.tolerance);
}

std::map<RowKey, const BenchRow*> unique_rows(std::span<const BenchRow> rows, std::string_view which) {
  std::vector<const BenchRow*> replaced;
  auto result = rows_by_key(rows, replaced);
  if (!replaced.empty())
    fail(ErrorCode::kInvalidArgument, "{}: {} stands there twice", which, describe_key(*replaced.front()));
  return result;
}

}  // namespace

std::string_view to_string(BenchFindingKind kind) {
  return kKinds.at(static_cast<size_t>(kind)).name;
}

BenchCheck check_bench(std::span<const BenchRow> expected, std::span<const BenchRow> now,
                       const BenchCheckOptions& options) {
  check_options(options);
  Checker checker(options);
  std::vector<const BenchRow*> replaced;
  const auto old_rows = rows_by_key(expected, replaced);
  const auto new_rows = rows_by_key(now, replaced);
  for (const auto& [key, row] : old_rows) {
    const auto found = new_rows.find(key);
    if (found != new_rows.end()) {
      checker.compare(*row, *found->second);
    } else if (!options.partial) {
      checker.add(BenchFindingKind::kMissing, *row, "expected, but it did not run");
    }
  }
  for (const auto& [key, row] : new_rows) {
    if (old_rows.contains(key)) continue;
    checker.add(BenchFindingKind::kNew, *row, "not among the expected; --update adds it");
  }
  for (const BenchRow* row : replaced)
    checker.add(BenchFindingKind::kDuplicate, *row, "stands there twice; the last row counts");
  return checker.take();
}

int BenchCheck::exit_code() const {
  const auto has = [&](BenchSeverity severity) {
    return std::ranges::any_of(findings,
                               [&](const BenchFinding& finding) { return finding.severity == severity; });
  };
  if (has(BenchSeverity::kRegression)) return 1;
  return has(BenchSeverity::kOutdated) ? 3 : 0;
}

std::string BenchCheck::text() const {
  std::string text;
  if (!findings.empty()) {
    std::vector<Row> rows;
    for (const BenchFinding& finding : findings)
      rows.push_back({std::string(to_string(finding.kind)), finding.model, finding.message});
    const std::vector<Column> columns = {
        {"finding"}, {"model", Align::kLeft, Cut::kMiddle, 30}, {"what", Align::kLeft, Cut::kMiddle, 44}};
    text = render_table(columns, rows, kWidth);
  }
  const auto count = [&](BenchSeverity severity) {
    return std::ranges::count_if(findings,
                                 [&](const BenchFinding& finding) { return finding.severity == severity; });
  };
  const std::string_view verdict = exit_code() == 0   ? "as expected"
                                   : exit_code() == 3 ? "expectations are out of date"
                                                      : "worse than expected";
  return text + fmt::format("{}: {} compared, {}, {} out of date, {}\n", verdict, compared,
                            counted(count(BenchSeverity::kRegression), "regression"),
                            count(BenchSeverity::kOutdated), counted(count(BenchSeverity::kNote), "note"));
}

std::vector<BenchRow> updated_expectations(std::span<const BenchRow> expected, std::span<const BenchRow> now,
                                           const BenchCheckOptions& options) {
  check_options(options);
  std::map<RowKey, const BenchRow*> merged = unique_rows(now, "new results");
  std::map<RowKey, const BenchRow*> before;
  if (options.partial || !options.timed) before = unique_rows(expected, "expectations");
  if (options.partial) merged.insert(before.begin(), before.end());
  std::vector<BenchRow> rows;
  for (const auto& [key, row] : merged) {
    BenchRow kept = *row;
    // Addresses and times in a message would change the file at every update.
    kept.error.clear();
    kept.layers.clear();
    kept.plan.clear();
    if (const auto old = before.find(key); !options.timed && old != before.end()) {
      kept.speedup = old->second->speedup;
      kept.abs_latency = old->second->abs_latency;
      kept.spread = old->second->spread;
      kept.speedup_low = old->second->speedup_low;
      kept.speedup_high = old->second->speedup_high;
      kept.rounds = old->second->rounds;
    }
    rows.push_back(std::move(kept));
  }
  return rows;
}

}  // namespace halftone
