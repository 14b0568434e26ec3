// compare_bench(): two runs as a table.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "bench/results/row_key.h"
#include "bench/results/text.h"
#include "halftone/bench/results.h"
#include "halftone/cli/message.h"
#include "halftone/cli/table.h"

namespace halftone {
namespace {

std::string fixed(const std::optional<double>& value, int digits, std::string_view unit = "") {
  return value ? fmt::format("{:.{}f}{}", *value, digits, unit) : std::string("-");
}

/// How much larger b is than a, in percent; "-" where that means nothing.
std::string change(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b || !std::isfinite(*a) || !std::isfinite(*b) || *a <= 0) return "-";
  return fmt::format("{:+.1f} %", (*b / *a - 1) * 100);
}

std::string from_to(const std::string& a, const std::string& b) {
  const auto word = [](const std::string& text) {
    return text.empty() ? std::string("-") : terminal_text(text, 40);
  };
  return a == b ? word(a) : word(a) + " → " + word(b);
}

/// What tells the rows of one model apart: the scheme, and mode and backend where they are not the usual
/// ones.
std::string way_of(const BenchRow& row) {
  const bool usual_mode = row.mode == "inference";
  std::string text = usual_mode ? "" : terminal_text(row.mode, 40);
  const auto add = [&](const std::string& part) {
    text += (text.empty() ? "" : ", ") + terminal_text(part, 40);
  };
  if (usual_mode || row.scheme != "noquant") add(row.scheme);
  if (row.backend != "halftone") add(row.backend);
  return text;
}

/// Small models take microseconds: two decimals would leave nothing of them.
std::string milliseconds(const std::optional<double>& ms) {
  return fixed(ms, ms && *ms < 0.1 ? 5 : ms && *ms < 10 ? 3 : 2);
}

Row compared_row(const BenchRow& a, const BenchRow& b) {
  return {terminal_text(b.name),
          fmt::to_string(b.batch_size),
          way_of(b),
          from_to(a.accuracy, b.accuracy),
          fixed(a.speedup, 3, "x"),
          fixed(b.speedup, 3, "x"),
          change(a.speedup, b.speedup),
          milliseconds(a.abs_latency),
          milliseconds(b.abs_latency),
          change(a.abs_latency, b.abs_latency)};
}

const std::vector<Column>& compared_columns() {
  static const std::vector<Column> kColumns = {{"name", Align::kLeft, Cut::kMiddle, 16},
                                               {"batch", Align::kRight},
                                               {"scheme", Align::kLeft, Cut::kMiddle, 14},
                                               {"accuracy", Align::kLeft, Cut::kMiddle, 12},
                                               {"speed-up A", Align::kRight},
                                               {"B", Align::kRight},
                                               {"change", Align::kRight},
                                               {"ms A", Align::kRight},
                                               {"B", Align::kRight},
                                               {"change", Align::kRight}};
  return kColumns;
}

std::string list_of(std::string_view title, const std::vector<const BenchRow*>& rows, int width) {
  if (rows.empty()) return {};
  std::string text = fmt::format("\n{}:\n", title);
  for (const BenchRow* row : rows) text += wrap_text(describe_key(*row), width);
  return text;
}

std::vector<BenchRow> copies(const std::vector<std::pair<const BenchRow*, const BenchRow*>>& pairs,
                             bool second) {
  std::vector<BenchRow> rows;
  for (const auto& [a, b] : pairs) {
    BenchRow row = second ? *b : *a;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Over the rows that both have: other means would compare different models.
std::string compared_means(const std::vector<std::pair<const BenchRow*, const BenchRow*>>& pairs, int width) {
  const std::vector<BenchMean> a = geometric_means(copies(pairs, false));
  const std::vector<BenchMean> b = geometric_means(copies(pairs, true));
  std::vector<Row> rows;
  for (size_t i = 0; i < a.size(); ++i) {
    rows.push_back({terminal_text(a[i].mode, 40), terminal_text(a[i].scheme, 40),
                    terminal_text(a[i].backend, 40), fmt::format("{} / {}", a[i].rows, b[i].rows),
                    fixed(a[i].speedup, 3, "x"), fixed(b[i].speedup, 3, "x"),
                    change(a[i].speedup, b[i].speedup)});
  }
  const std::vector<Column> columns = {{"geometric mean", Align::kLeft, Cut::kMiddle, 14},
                                       {"scheme", Align::kLeft, Cut::kMiddle, 14},
                                       {"backend", Align::kLeft, Cut::kMiddle, 10},
                                       {"rows A / B", Align::kRight},
                                       {"speed-up A", Align::kRight},
                                       {"B", Align::kRight},
                                       {"change", Align::kRight}};
  return "\n" + render_table(columns, rows, width);
}

/// "1.75x ±0.05": with the farther end of the interval; "±?" if there were too few rounds for one.
std::string speedup_of(const BenchRow& row) {
  if (!row.speedup || !row.speedup_low) return fixed(row.speedup, 3, "x");
  if (!row.speedup_high) return fmt::format("{:.2f}x ±?", *row.speedup);
  return fmt::format("{:.2f}x ±{:.2f}", *row.speedup,
                     std::max(*row.speedup - *row.speedup_low, *row.speedup_high - *row.speedup));
}

/// The words are those of files; one of them says too little to people.
std::string accuracy_of(const BenchRow& row) {
  if (row.accuracy.empty()) return "-";
  return row.accuracy == "pass_due_to_skip" ? "skipped" : terminal_text(row.accuracy, 40);
}

/// What the speed-ups rest on; nothing where none was measured.
std::string rounds_of(std::span<const BenchRow> rows) {
  int64_t fewest = std::numeric_limits<int64_t>::max(), most = 0;
  for (const BenchRow& row : rows) {
    if (!row.rounds) continue;
    fewest = std::min(fewest, *row.rounds);
    most = std::max(most, *row.rounds);
  }
  if (most == 0) return "";
  const std::string count =
      fewest == most ? counted(most, "round") : fmt::format("{} to {}", fewest, counted(most, "round"));
  return fmt::format("speed-up: median of {}, ± the 95 % interval\n", count);
}

}  // namespace

std::string compare_bench(std::span<const BenchRow> a, std::span<const BenchRow> b, int width) {
  std::vector<const BenchRow*> replaced;
  const auto rows_a = rows_by_key(a, replaced);
  const auto rows_b = rows_by_key(b, replaced);
  std::vector<std::pair<const BenchRow*, const BenchRow*>> both;
  std::vector<const BenchRow*> only_a;
  std::vector<const BenchRow*> only_b;
  std::vector<Row> lines;
  for (const auto& [key, row] : rows_a) {
    const auto found = rows_b.find(key);
    if (found == rows_b.end()) {
      only_a.push_back(row);
      continue;
    }
    both.emplace_back(row, found->second);
    lines.push_back(compared_row(*row, *found->second));
  }
  for (const auto& [key, row] : rows_b) {
    if (!rows_a.contains(key)) only_b.push_back(row);
  }
  std::string text = both.empty()
                         ? "no row is in both\n"
                         : render_table(compared_columns(), lines, width) + compared_means(both, width);
  text += list_of("only in A", only_a, width) + list_of("only in B", only_b, width);
  return text + list_of("twice in one file; the last row counts", replaced, width);
}

std::string describe_bench(std::span<const BenchRow> rows, int width) {
  // Usually there are none, and names need the space.
  const bool unsupported =
      std::ranges::any_of(rows, [](const BenchRow& row) { return row.unsupported_ops.value_or(0) > 0; });
  std::vector<Column> columns = {{"name", Align::kLeft, Cut::kMiddle, 16},
                                 {"batch", Align::kRight},
                                 {"scheme", Align::kLeft, Cut::kMiddle, 14},
                                 {"accuracy", Align::kLeft, Cut::kMiddle, 12},
                                 {"speed-up", Align::kRight},
                                 {"ms", Align::kRight},
                                 {"cosine", Align::kRight},
                                 {"size", Align::kRight},
                                 {"compile s", Align::kRight}};
  if (unsupported) columns.push_back({"to ATen", Align::kRight});
  std::vector<Row> lines;
  for (const BenchRow& row : rows) {
    lines.push_back({terminal_text(row.name), fmt::to_string(row.batch_size), way_of(row), accuracy_of(row),
                     speedup_of(row), milliseconds(row.abs_latency), fixed(row.cosine, 5),
                     row.bytes ? describe_bytes(*row.bytes) : "-", fixed(row.compilation_latency, 1)});
    if (unsupported) lines.back().push_back(row.unsupported_ops ? fmt::to_string(*row.unsupported_ops) : "-");
  }
  std::string text = render_table(columns, lines, width) + "\n";
  for (const BenchMean& mean : geometric_means(rows)) {
    const std::string left_out = mean.left_out == 0 ? "" : fmt::format(", {} left out", mean.left_out);
    text += fmt::format("geometric mean, {}, {}, {}: {} over {} row{}{}\n", terminal_text(mean.mode, 40),
                        terminal_text(mean.scheme, 40), terminal_text(mean.backend, 40),
                        fixed(mean.speedup, 3, "x"), mean.rows, mean.rows == 1 ? "" : "s", left_out);
  }
  text += rounds_of(rows);
  if (unsupported) text += "to ATen: operators that the backend has no kernel for and leaves to ATen\n";
  for (const BenchRow& row : rows) {
    if (!row.error.empty())
      text += wrap_text(describe_key(row) + ": " + terminal_text(row.error, 300), width);
  }
  return text;
}

}  // namespace halftone
