// Many jobs, each in a process of its own.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "base/json.h"
#include "bench/run/job.h"
#include "halftone/bench/bench.h"
#include "tune/report/report_json.h"
#include "tune/trial.h"

namespace halftone {
namespace {

BenchRow failed_row(const BenchJob& job, std::string_view word, std::string error) {
  BenchRow row = bench_row_of(job);
  row.accuracy = word;
  row.error = std::move(error);
  return row;
}

/// The last line that is not empty: libraries may print before it.
std::string_view last_line_of(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  const size_t start = text.rfind('\n');
  return start == std::string_view::npos ? text : text.substr(start + 1);
}

std::string_view word_of(const ChildOutcome& outcome) {
  switch (outcome.end) {
    case ChildEnd::kTimeout:
      return "timeout";
    case ChildEnd::kMemory:
      return "OOM";
    default:
      return "fail_to_run";
  }
}

/// "it crashed (SIGSEGV); it said: …"
std::string with_last_words(std::string failure, const ChildOutcome& outcome) {
  constexpr size_t kMaxWords = 600;
  std::string_view words = outcome.errors;
  while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) words.remove_suffix(1);
  if (words.size() > kMaxWords) words.remove_prefix(words.size() - kMaxWords);
  if (!words.empty()) failure += fmt::format("; it said: {}", words);
  return failure;
}

BenchRow row_of_child(const BenchJob& job, const ChildOutcome& outcome) {
  try {
    const BenchResults answer = bench_results_from_json(last_line_of(outcome.output), "the child's answer");
    if (answer.rows.size() == 1) return answer.rows[0];
    return failed_row(job, "infra_error",
                      with_last_words(fmt::format("{} rows came back", answer.rows.size()), outcome));
  } catch (const Error& error) {
    return failed_row(job, "infra_error",
                      with_last_words(fmt::format("no row came back: {}", error.what()), outcome));
  }
}

BenchRow run_in_child(const BenchJob& job, const BenchRunOptions& options) {
  std::vector<std::string> arguments = options.command;
  arguments.push_back(to_json(job));
  try {
    const ChildOutcome outcome = run_child(arguments, options.timeout, options.memory_limit);
    if (outcome.failure.empty()) return row_of_child(job, outcome);
    return failed_row(job, word_of(outcome), with_last_words(outcome.failure, outcome));
  } catch (const Error& error) {
    return failed_row(job, "infra_error", error.what());
  }
}

std::string describe_job(const BenchJob& job) {
  std::string text = fmt::format("{}, {}", bench_row_name(job.model), job.mode);
  if (job.scheme != "noquant") text += ", " + job.scheme;
  if (job.backend != "halftone") text += ", " + job.backend;
  return text;
}

}  // namespace

std::string run_bench_child(std::string_view job_json) {
  BenchResults answer;
  BenchJob job;
  try {
    job = bench_job_from_json(job_json);
    answer.rows = {run_bench(job)};
  } catch (const std::exception& error) {
    if (job.model.empty()) job.model = "unknown";
    answer.rows = {failed_row(job, "infra_error", error.what())};
  }
  try {
    return dump_json(nlohmann::ordered_json::parse(to_json(answer)), -1);
  } catch (const std::exception& error) {
    return fmt::format("the row could not be written: {}", error.what());
  }
}

BenchResults run_bench_suite(const std::vector<BenchJob>& jobs, const BenchRunOptions& options) {
  for (const BenchJob& job : jobs) check_bench_job(job);
  BenchResults results;
  results.machine = this_machine();
  if (!jobs.empty() && jobs.front().threads > 0) results.machine.threads = jobs.front().threads;
  const auto total = static_cast<int64_t>(jobs.size());
  for (const BenchJob& job : jobs) {
    if (options.progress)
      options.progress(static_cast<int64_t>(results.rows.size()), total, describe_job(job));
    results.rows.push_back(options.command.empty() ? run_bench(job) : run_in_child(job, options));
    if (options.row) options.row(results.rows.back());
  }
  if (options.progress) options.progress(total, total, "");
  return results;
}

}  // namespace halftone
