// Results of a benchmark run: the data, and the files, tables and pages made of it. No torch.
// docs/bench_results.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"

namespace halftone {

/// Time and error of one layer inside a model. Numbers that were not measured are absent, never 0.
struct BenchLayer {
  std::string layer;            ///< qualified name
  std::string kind;             ///< "linear", "conv2d", …
  std::string scheme;           ///< "int8dq"; "fp32" where the layer stayed as it was
  std::optional<double> share;  ///< of the model's time, 0 … 1
  std::optional<double> ms;
  std::optional<double> error;  ///< 1 - cosine to the fp32 layer's output
  std::string reason;           ///< why this scheme
  bool operator==(const BenchLayer&) const = default;
};

/// A scheme that a plan looked at for a layer, and what it would have cost.
struct BenchCandidate {
  std::string scheme;
  std::optional<double> ms;
  std::optional<double> error;
  std::string note;  ///< why it was refused, or ""
  bool operator==(const BenchCandidate&) const = default;
};

struct BenchChoice {
  std::string layer;
  std::string choice;  ///< a scheme
  std::string reason;
  std::vector<BenchCandidate> candidates;
  bool operator==(const BenchChoice&) const = default;
};

/// One model × batch × mode × scheme × backend: what benchmark suites call a row. Text is UTF-8; writers
/// spell out bytes that are not (`\xff`).
struct BenchRow {
  std::string dev = "cpu";
  std::string name;
  int64_t batch_size = 1;
  std::string mode = "inference";  ///< or "training"
  std::string scheme = "noquant";
  std::string backend = "halftone";
  std::string accuracy;               ///< one of accuracy_words(), or "" if it was not looked at
  std::optional<double> speedup;      ///< median of the baseline's times divided by ours, round by round
  std::optional<double> abs_latency;  ///< our median time, ms
  std::optional<double> compilation_latency;  ///< s
  std::optional<double> compression_ratio;    ///< eager_peak_mem / halftone_peak_mem
  std::optional<double> eager_peak_mem;       ///< GB (10^9 bytes)
  std::optional<double> halftone_peak_mem;    ///< GB
  std::optional<double> cosine;               ///< of the outputs to fp32's, -1 … 1
  std::optional<int64_t> bytes;               ///< of the weights as they are stored
  std::optional<int64_t> unsupported_ops;     ///< operators that the backend left to the interpreter
  std::optional<double> spread;               ///< (p90 - p10) / median of our times
  std::optional<double> speedup_low;          ///< of the speed-up's interval (95 %)
  std::optional<double> speedup_high;         ///< nothing: too few rounds for an upper end
  std::optional<int64_t> rounds;              ///< undisturbed ones
  std::string error;                          ///< what a crash, time-out or failure said
  std::vector<BenchLayer> layers;             ///< JSON only
  std::vector<BenchChoice> plan;              ///< JSON only
  bool operator==(const BenchRow&) const = default;
};

/// The words of PyTorch's dynamo benchmarks: "pass", "fail_accuracy", "fail_to_run", "timeout", "OOM", …
HALFTONE_API std::span<const std::string_view> accuracy_words();
/// "pass", "pass_due_to_skip", and "" (not looked at).
HALFTONE_API bool accuracy_holds(std::string_view word);
/// A row without failure: its accuracy holds, and, if it was timed, it has a speed-up.
/// Skipped rows count as well.
HALFTONE_API bool row_is_sound(const BenchRow& row, bool timed);

struct BenchMachine {
  std::string cpu;
  std::string isa;
  int64_t threads = 0;
  std::string os;
  std::string date;                             ///< ISO 8601, UTC
  std::map<std::string, std::string> versions;  ///< "halftone", "torch", "compiler", …
  bool operator==(const BenchMachine&) const = default;
};

/// Geometric mean over the rows of one mode, scheme and backend.
struct BenchMean {
  std::string mode, scheme, backend;
  int64_t rows = 0;      ///< that count: accuracy holds, and the speed-up is a finite number above 0
  int64_t left_out = 0;  ///< that do not
  std::optional<double> speedup;
  std::optional<double> compression_ratio;  ///< over those of the rows that have one
  bool operator==(const BenchMean&) const = default;
};

struct BenchResults {
  std::string title;
  BenchMachine machine;
  std::vector<BenchRow> rows;
  bool operator==(const BenchResults&) const = default;
};

/// Sorted by mode, scheme and backend.
HALFTONE_API std::vector<BenchMean> geometric_means(std::span<const BenchRow> rows);

// --- JSON: everything ---

HALFTONE_API std::string to_json(const BenchResults& results);
/// Refuses unknown keys, values of the wrong kind or out of range, and means that do not belong to the rows:
/// kCorruptFile, with `file` and the place ("rows[3].layers[0].share"). `file` is for messages.
HALFTONE_API BenchResults bench_results_from_json(std::string_view text, std::string_view file);
HALFTONE_API BenchResults read_bench_json(const std::string& path);
HALFTONE_API void write_bench_json(const std::string& path, const BenchResults& results);  ///< atomically

// --- CSV: rows without layers and plans ---

// RFC 4180 with "\n" line ends. A text that a spreadsheet would take for a formula gets a ' in front;
// Halftone takes that ' off again (docs/bench_results.md says for which texts). Reading wants the column
// "name", takes any order and subset of the columns, and refuses others (kCorruptFile with the line).

HALFTONE_API std::string to_csv(std::span<const BenchRow> rows);

struct BenchCsv {
  std::vector<BenchRow> rows;
  std::vector<std::string> notes;  ///< a last line that a crash cut off, and what it was
};
HALFTONE_API BenchCsv bench_rows_from_csv(std::string_view text, std::string_view file);
HALFTONE_API BenchCsv read_bench_csv(const std::string& path);
HALFTONE_API void write_bench_csv(const std::string& path, std::span<const BenchRow> rows);  ///< atomically

/// Adds rows at the end of the file, which is made if it is not there, in one write under a lock: processes
/// may append at the same time. A half line at the end, left by a crash, is cut off. The header must be
/// Halftone's (kInvalidArgument otherwise). Returns notes, one for each repair.
HALFTONE_API std::vector<std::string> append_bench_csv(const std::string& path,
                                                       std::span<const BenchRow> rows);

// --- Check and compare ---

struct BenchCheckOptions {
  double tolerance = 0.10;  ///< a speed-up may fall to expected × (1 - tolerance)
  bool partial = false;     ///< only some models ran: rows that are missing are no finding
  bool timed = true;  ///< false: only accuracy was asked for; speed-ups are not compared, and stay expected
};

enum class BenchFindingKind {
  kAccuracyWorse,     ///< held, and does not any more; or another failure than expected
  kAccuracyBetter,    ///< did not hold and does now: the expectation is out of date
  kSlower,            ///< beyond the tolerance, or the speed-up is missing
  kMoreUnsupported,   ///< operators
  kMissing,           ///< expected, and not there
  kFaster,            ///< beyond the tolerance
  kFewerUnsupported,  ///< operators
  kNew,               ///< not among the expected
  kDuplicate,         ///< the same model twice in one file
};
HALFTONE_API std::string_view to_string(BenchFindingKind kind);

enum class BenchSeverity { kNote, kOutdated, kRegression };

struct BenchFinding {
  BenchFindingKind kind;
  BenchSeverity severity;
  std::string model;    ///< "name, batch 8, inference, int8dq, halftone", safe to print
  std::string message;  ///< one line, safe to print
};

struct HALFTONE_API BenchCheck {
  std::vector<BenchFinding> findings;  ///< worst first
  int64_t compared = 0;
  /// For CI: 0 all is as expected, 1 something got worse or went missing, 3 nothing did, but the expectations
  /// are out of date (2 is left to wrong usage).
  int exit_code() const;
  std::string text() const;  ///< the findings as a table of 100 columns and a last line with the verdict
};
HALFTONE_API BenchCheck check_bench(std::span<const BenchRow> expected, std::span<const BenchRow> now,
                                    const BenchCheckOptions& options = {});

/// The new expectations: the rows of `now`, sorted, and with options.partial those of `expected` that did not
/// run. Errors and layers stay out. Duplicates are refused (kInvalidArgument).
HALFTONE_API std::vector<BenchRow> updated_expectations(std::span<const BenchRow> expected,
                                                        std::span<const BenchRow> now,
                                                        const BenchCheckOptions& options = {});

/// A table of the rows that both have, what only one has, and the geometric means. `width` columns.
HALFTONE_API std::string compare_bench(std::span<const BenchRow> a, std::span<const BenchRow> b,
                                       int width = 100);
/// The rows and their geometric means, for the terminal.
HALFTONE_API std::string describe_bench(std::span<const BenchRow> rows, int width = 100);

// --- Report ---

/// One HTML file that needs no network: charts, table, layers, plan, machine. Names are data there, never
/// code.
HALFTONE_API std::string to_html(const BenchResults& results);
HALFTONE_API void write_bench_html(const std::string& path, const BenchResults& results);  ///< atomically

}  // namespace halftone
