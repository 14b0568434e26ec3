#include "bench_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/console.h"
#include "common/inputs.h"
#include "common/model_file.h"
#include "common/output_file.h"
#include "halftone/base/error.h"
#include "halftone/bench/results.h"
#include "halftone/cli/message.h"
#include "halftone/cli/table.h"
#include "tune_files.h"

namespace halftone::cli {

namespace {

const BenchModelInfo* built_in(const std::string& name) {
  const std::vector<BenchModelInfo>& models = bench_models();
  const auto found =
      std::find_if(models.begin(), models.end(), [&](const BenchModelInfo& one) { return one.name == name; });
  return found == models.end() ? nullptr : &*found;
}

/// A captured graph of a file has no loss.
bool can_train(const std::string& model) {
  const BenchModelInfo* info = built_in(model);
  return info != nullptr && info->trains;
}

BenchJob first_job(const BenchRequest& request, int threads) {
  BenchJob job;
  const bool all = !request.performance && !request.accuracy;
  job.performance = request.performance || all;
  job.accuracy = request.accuracy || all;
  job.seconds = request.seconds;
  job.threads = threads;
  job.seed = request.seed;
  job.baseline = request.baseline;
  job.cache_dir = request.cache;
  return job;
}

std::vector<std::string> child_command(const BenchRequest& request) {
  std::vector<std::string> command = {own_program(), "bench-child"};
  for (const std::string& library : request.libraries)
    command.insert(command.end(), {"--load-library", library});
  if (request.max_steps > 0)
    command.insert(command.end(), {"--max-steps", std::to_string(request.max_steps)});
  return command;
}

void say_notes(const std::vector<std::string>& notes, Console& console) {
  for (const std::string& note : notes) console.warn(note);
}

BenchResults run_jobs(const BenchRequest& request, const std::vector<BenchJob>& jobs, Console& console) {
  BenchRunOptions options;
  if (!request.in_process) options.command = child_command(request);
  options.timeout = request.timeout;
  options.memory_limit = request.memory_limit;
  ProgressBar bar(console, "bench", static_cast<int64_t>(jobs.size()));
  options.progress = [&](int64_t done, int64_t, std::string_view what) { bar.update(done, what); };
  options.row = [&](const BenchRow& row) {
    // As it is done: what was measured before a power cut is not lost.
    if (!request.csv.empty()) say_notes(append_bench_csv(request.csv, {&row, 1}), console);
  };
  BenchResults results = run_bench_suite(jobs, options);
  results.title = fmt::format("halftone bench {}", std::filesystem::path(request.suite).filename().string());
  return results;
}

void write_results(const BenchRequest& request, const BenchResults& results, Console& console) {
  if (!request.json.empty()) write_bench_json(request.json, results);
  if (!request.html.empty()) write_bench_html(request.html, results);
  for (const std::string& path : {request.csv, request.json, request.html}) {
    if (!path.empty()) console.info(fmt::format("wrote {}", path));
  }
}

/// Only some of the models ran: rows of others are no finding.
bool is_partial(const BenchSelection& selection) {
  return !selection.only.empty() || !selection.exclude.empty() || selection.parts > 1;
}

bool is_timed(const BenchRequest& request) {
  return request.performance || !request.accuracy;
}

/// Of what failed, was wrong or could not be timed there is no good news.
int exit_code_of(const BenchRequest& request, const BenchResults& results, Console& console) {
  const auto failed = std::count_if(results.rows.begin(), results.rows.end(), [&](const BenchRow& row) {
    return !row_is_sound(row, is_timed(request));
  });
  if (failed == 0) return kDone;
  console.warn(fmt::format("{} of {} failed", failed, counted(results.rows.size(), "row")));
  return kJobFailed;
}

/// One line, and not a row for each scheme.
void refuse_gguf(const BenchRequest& request) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(request.suite, ignored)) return;
  if (model_file_kind(request.suite) == ModelFileKind::kGguf) open_model({.path = request.suite});
}

/// Before the first row runs. A file that cannot be read is a row of its own later.
void check_shapes(const BenchRequest& request) {
  if (request.shapes.empty()) return;
  for (const std::string& model : select_bench_models(request.suite, request.selection)) {
    if (built_in(model) != nullptr)
      throw UsageError(fmt::format(
          "--shapes needs a .pt2 or .ht file, or a folder of them, as SUITE: \"{}\" makes inputs of its own "
          "(--batch-sizes)",
          model));
    std::shared_ptr<GraphModule> module;
    try {
      ModelOptions options;
      options.path = model;
      module = open_model(options);
    } catch (const Error&) {
      continue;
    }
    for (const std::string& shapes : request.shapes)
      require_fitting(*module, shapes, made_up_inputs(*module, shapes, request.seed));
  }
}

/// The expectations as they were before the run, and what becomes of them after it.
class Expectations {
 public:
  Expectations(const BenchRequest& request, Console& console) : request_(request) {
    options_.tolerance = request.tolerance;
    options_.partial = is_partial(request.selection);
    options_.timed = is_timed(request);
    // The first --update makes the file.
    if (request.update && !std::filesystem::exists(request.check)) return;
    const BenchCsv read = read_bench_csv(request.check);
    say_notes(read.notes, console);
    rows_ = read.rows;
  }

  int judge(const BenchResults& results, const CommonOptions& common, Console& console) const {
    const BenchCheck check = check_bench(rows_, results.rows, options_);
    // With --json stdout holds the results alone.
    common.json ? console.info(check.text()) : console.result("\n" + check.text());
    if (!request_.update) return check.exit_code();
    write_bench_csv(request_.check, updated_expectations(rows_, results.rows, options_));
    console.info(fmt::format("wrote {}", request_.check));
    return kDone;
  }

 private:
  const BenchRequest& request_;
  BenchCheckOptions options_;
  std::vector<BenchRow> rows_;
};

}  // namespace

std::vector<BenchJob> bench_jobs(const BenchRequest& request, int threads) {
  const std::vector<std::string> schemes =
      request.schemes.empty() ? default_bench_schemes() : request.schemes;
  std::vector<BenchJob> jobs;
  const auto add_rows = [&](const std::string& model, const char* mode, const std::string& scheme) {
    for (const std::string& backend : request.backends) {
      const auto add_row = [&](int64_t batch, const std::string& shapes) {
        BenchJob& job = jobs.emplace_back(first_job(request, threads));
        job.model = model;
        job.mode = mode;
        job.scheme = scheme;
        job.backend = backend;
        job.batch_size = batch;
        job.shapes = shapes;
      };
      for (const std::string& shapes : request.shapes) add_row(0, shapes);
      if (!request.shapes.empty()) continue;
      for (const int64_t batch : request.batch_sizes) add_row(batch, "");
    }
  };
  const bool inference = request.inference || !request.training;
  for (const std::string& model : select_bench_models(request.suite, request.selection)) {
    if (inference) {
      for (const std::string& scheme : schemes) add_rows(model, "inference", scheme);
    }
    if (request.training && can_train(model)) add_rows(model, "training", "noquant");
  }
  if (jobs.empty()) throw Error(ErrorCode::kInvalidArgument, "none of these models can be trained");
  return jobs;
}

int run_bench_request(const BenchRequest& request, const CommonOptions& common, Console& console) {
  // Rows are added to the CSV file, and expectations are what --update rewrites: they may be there.
  for (const std::string& path : {request.csv, request.check})
    require_writable({path, request.force}, {request.suite});
  for (const std::string& path : {request.json, request.html})
    require_writable({path, request.force}, {request.suite, {request.csv, request.check}});
  refuse_gguf(request);
  check_shapes(request);
  std::optional<Expectations> expectations;
  if (!request.check.empty()) expectations.emplace(request, console);
  const BenchResults results = run_jobs(request, bench_jobs(request, common.threads), console);
  console.result(common.json ? to_json(results) + "\n" : describe_bench(results.rows, kColumns));
  write_results(request, results, console);
  return expectations ? expectations->judge(results, common, console)
                      : exit_code_of(request, results, console);
}

void list_bench_models(const BenchRequest& request, const CommonOptions& common, Console& console) {
  std::vector<Row> rows;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const std::string& model : select_bench_models(request.suite, request.selection)) {
    const BenchModelInfo* info = built_in(model);
    if (info == nullptr) {
      rows.push_back({model, "", "no", "a file"});
      json.push_back({{"model", model}, {"trains", false}});
    } else {
      rows.push_back({model, fmt::to_string(info->batch_size), info->trains ? "yes" : "no", info->what});
      json.push_back(
          {{"model", model}, {"batch", info->batch_size}, {"trains", info->trains}, {"what", info->what}});
    }
  }
  if (common.json)
    return console.result(nlohmann::ordered_json{{"models", json}}.dump(
                              -1, ' ', false, nlohmann::json::error_handler_t::replace) +
                          "\n");
  console.result(render_table({{"model", Align::kLeft, Cut::kMiddle, 20},
                               {"batch", Align::kRight},
                               {"trains"},
                               {"what", Align::kLeft, Cut::kMiddle, 20}},
                              rows, kColumns));
}

void compare_bench_files(const std::string& a, const std::string& b, Console& console) {
  const BenchCsv before = read_bench_csv(a);
  const BenchCsv after = read_bench_csv(b);
  say_notes(before.notes, console);
  say_notes(after.notes, console);
  console.result(compare_bench(before.rows, after.rows, kColumns));
}

}  // namespace halftone::cli
