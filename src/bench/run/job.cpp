#include "bench/run/job.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/errors.h"
#include "base/nearest.h"
#include "base/scheme_table.h"
#include "halftone/capture/open_model.h"
#include "halftone/compile/compilers.h"
#include "halftone/tune/autoquant_plan.h"

namespace halftone {
namespace {

void check_name(std::string_view what, const std::string& name, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  fail(ErrorCode::kInvalidArgument, "bench: there is no {} \"{}\"{}; known: {}", what, name,
       did_you_mean(name, known), fmt::join(nearest_first(name, known), ", "));
}

void check_job_model(const BenchJob& job) {
  if (is_model_file(job.model)) {
    if (job.mode == "training")
      fail(ErrorCode::kInvalidArgument, "bench: {}: a file has no training step", job.model);
    if (!job.shapes.empty() && job.batch_size > 0)
      fail(ErrorCode::kInvalidArgument, "bench: {}: either shapes or a batch size, not both", job.model);
    return;
  }
  if (!job.shapes.empty())
    fail(ErrorCode::kInvalidArgument,
         "bench: {}: shapes are for files; the suite's models make inputs of their own", job.model);
  std::vector<std::string> names;
  for (const BenchModelInfo& info : bench_models()) names.push_back(info.name);
  check_name("model", job.model, names);
}

void check_job_backend(const BenchJob& job) {
  try {
    lookup_compiler(job.backend);
  } catch (const Error& error) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("bench: {}", error.what()));
  }
}

}  // namespace

std::vector<std::string> default_bench_schemes() {
  std::vector<std::string> names = torchao_scheme_names();
  // What the others are compared with comes first.
  std::rotate(names.begin(), std::find(names.begin(), names.end(), "noquant"), names.end());
  return names;
}

std::vector<std::string> bench_schemes() {
  std::vector<std::string> names = default_bench_schemes();
  for (const AutoquantScheme& scheme : autoquant_schemes()) {
    if (std::find(names.begin(), names.end(), scheme.name) == names.end()) names.push_back(scheme.name);
  }
  return names;
}

void check_bench_scheme(std::string_view name) {
  const NamedScheme scheme = named_scheme(name);
  if (scheme.entry->kind != SchemeKind::kMeasured) named_config(name);
}

bool is_model_file(const std::string& model) {
  // A file that is not there, or is broken, is an error of reading it.
  if (model.ends_with(".pt2") || model.ends_with(".ht")) return true;
  std::error_code ignored;
  return std::filesystem::is_regular_file(model, ignored) && model_file_kind(model) != ModelFileKind::kOther;
}

std::string bench_row_name(const std::string& model) {
  return is_model_file(model) ? std::filesystem::path(model).filename().string() : model;
}

BenchRow bench_row_of(const BenchJob& job) {
  BenchRow row;
  row.name = bench_row_name(job.model);
  if (!job.shapes.empty()) row.name += " " + job.shapes;
  row.mode = job.mode;
  row.scheme = job.scheme;
  row.backend = job.backend;
  row.batch_size = job.batch_size;
  for (const BenchModelInfo& info : bench_models())
    if (job.batch_size == 0 && info.name == job.model) row.batch_size = info.batch_size;
  return row;
}

std::optional<QuantConfig> bench_scheme_config(std::string_view scheme) {
  return autoquant_scheme(scheme).config;
}

BenchAccuracyBound bench_accuracy_bound(std::string_view scheme) {
  const SchemeEntry& entry = *named_scheme(scheme).entry;
  if (entry.kind == SchemeKind::kMeasured) return {std::nullopt, 0.995};  // what autoquant promises
  if (!bench_scheme_config(scheme)) return {1e-4, std::nullopt};
  if (entry.bits_per_weight < 8) return {std::nullopt, 0.9};
  return {std::nullopt, 0.98};
}

void check_bench_job(const BenchJob& job) {
  check_name("mode", job.mode, {"inference", "training"});
  try {
    check_bench_scheme(job.scheme);
  } catch (const Error& error) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("bench: {}", error.what()));
  }
  check_job_model(job);
  check_job_backend(job);
  if (job.mode == "training" && job.scheme != "noquant")
    fail(ErrorCode::kInvalidArgument, "bench: {}: training is without quantization, not with \"{}\"",
         job.model, job.scheme);
  if (job.batch_size < 0) fail(ErrorCode::kInvalidArgument, "bench: a batch size of {}", job.batch_size);
  if (job.threads < 0) fail(ErrorCode::kInvalidArgument, "bench: {} threads", job.threads);
  if (!std::isfinite(job.seconds) || job.seconds <= 0)
    fail(ErrorCode::kInvalidArgument, "bench: {} seconds for the times", job.seconds);
}

}  // namespace halftone
