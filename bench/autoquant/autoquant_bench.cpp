// autoquant_bench MODEL [--batch B]… [--tokens T] [--seconds S] [--json FILE]: plans MODEL (an encoder of
// (ids, mask) as .pt2, or the name of a built-in model) for each batch size, cold and again from the cache;
// then measures the plan at length beside fp32 and every single scheme that keeps the cosine. Exit code 1
// where the plan is slower than the best of them or than fp32 (by more than the measurement can tell), misses
// the cosine, or planning takes too long.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/suite/models.h"
#include "common/temporary_folder.h"
#include "halftone/base/log.h"
#include "halftone/capture/open_model.h"
#include "halftone/cli/kernels.h"
#include "halftone/tune/autoquant.h"
#include "halftone/tune/measure.h"
#include "halftone/tune/modules.h"
#include "tune/accuracy.h"
#include "tune/autoquant/planner.h"
#include "tune/candidate_run.h"
#include "tune/report/fingerprint.h"
#include "tune/setup.h"

namespace {

using namespace halftone;

constexpr double kMinCosine = 0.995;
constexpr double kMaxColdSeconds = 30;
constexpr double kMaxCachedSeconds = 2;
// What two runs of the same model may differ by when they take turns.
constexpr double kMeasurable = 1.01;
// Autoquant does not give up accuracy for less (ms a call).
constexpr double kWorthIt = 0.005;

struct Request {
  std::string model, json;
  std::vector<int64_t> batches{1, 4, 8};
  int64_t tokens = 128;
  double seconds = 20;
  uint64_t seed = 0;
  bool verbose = false;
};

/// A model as a graph, with calls of one batch size.
struct Subject {
  std::shared_ptr<GraphModule> graph;
  Samples samples;
};

Subject encoder_subject(const Request& request, int64_t batch) {
  Subject subject;
  subject.graph = open_model(request.model);
  const int64_t words = subject.graph->tensor("embeddings.word_embeddings.weight").size(0);
  at::manual_seed(request.seed + 1);
  for (int i = 0; i < 4; ++i) {
    const std::vector<int64_t> shape{batch, request.tokens};
    subject.samples.calls.push_back(
        sample_from_flat(*subject.graph, {at::randint(words, shape, at::kLong), at::ones(shape, at::kLong)}));
  }
  return subject;
}

Subject suite_subject(const Request& request, int64_t batch) {
  const SuiteModel model = make_suite_model(request.model);
  Subject subject;
  subject.samples = model.samples(batch, 4, request.seed);
  subject.graph = capture(*model.module, model.forward, subject.samples.calls.front().args,
                          {.name = model.name, .input_names = model.input_names});
  return subject;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Candidate {
  std::string name;
  std::unique_ptr<CandidateRun> candidate;
  double cosine = 0;
};

/// The plan, fp32, and every scheme for all layers it can be had for; those that keep the cosine.
std::vector<Candidate> make_candidates(const Subject& subject, const AutoquantPlan& plan) {
  const SampleLayout layout = lay_out(subject.samples, subject.graph.get(), {}, 0);
  CandidateRun eager({"eager", eager_backend_recipe()});
  eager.build(subject.graph, layout.shape_calls, {});
  std::vector<std::vector<c10::IValue>> expected;
  for (const Sample& sample : layout.validation) expected.push_back(eager.answers(sample));
  std::vector<Candidate> candidates;
  const auto add = [&](const std::string& name, const std::shared_ptr<const BackendRecipe>& recipe) {
    try {
      auto candidate = std::make_unique<CandidateRun>(TuneCandidate{name, recipe});
      candidate->build(subject.graph, layout.shape_calls, {});
      candidate->validate(layout.validation, expected, {});
      const double cosine = candidate->row.accuracy->min_cosine;
      fmt::print("    {:16} cosine {:.5f}{}\n", name, cosine, cosine < kMinCosine ? ", not measured" : "");
      if (cosine >= kMinCosine || name == "plan") candidates.push_back({name, std::move(candidate), cosine});
    } catch (const std::exception& error) {
      fmt::print("    {:16} {}\n", name, short_message(error));
    }
  };
  add("plan", layerwise_backend_recipe(plan.overrides()));
  add("fp32", halftone_backend_recipe());
  for (const AutoquantScheme& scheme : aq::schemes_to_try({})) {
    if (scheme.config)
      add(scheme.name, quant_backend_recipe({.quantization = {}, .quantization_config = scheme.config}));
  }
  return candidates;
}

nlohmann::ordered_json run_batch(const Request& request, int64_t batch, bool& met) {
  const bool encoder = request.model.ends_with(".pt2");
  const Subject subject = encoder ? encoder_subject(request, batch) : suite_subject(request, batch);
  const TemporaryFolder cache;
  AutoquantOptions options;
  options.min_cosine = kMinCosine;
  options.cache_dir = cache.path();
  options.seed = request.seed;
  clear_autoquant_cache();
  auto start = std::chrono::steady_clock::now();
  const auto quantized = subject.graph->clone();
  const AutoquantPlan plan = autoquant(quantized, subject.samples, options);
  const double cold = seconds_since(start);
  clear_autoquant_cache();  // of memory: the disk is what a later process has
  start = std::chrono::steady_clock::now();
  const bool same = plan_autoquant(subject.graph->clone(), subject.samples, options) == plan;
  const double cached = seconds_since(start);
  const auto replayed = subject.graph->clone();
  if (plan.quantizes()) apply_plan(*replayed, AutoquantPlan::from_json(plan.to_json(), "plan"));
  const bool same_bytes = model_hash(*replayed) == model_hash(*quantized);
  fmt::print("batch {}: planned in {:.1f} s, again in {:.2f} s{}, replay gives {} bytes\n", batch, cold,
             cached, same ? "" : " (ANOTHER PLAN)", same_bytes ? "the same" : "OTHER");
  if (request.verbose) fmt::print("{}\n", plan.to_text());
  for (const AutoquantRun& run : plan.runs)
    fmt::print("    raced {:16} {:9.3f} ms, {:.3f} of fp32, cosine {:.5f}{}\n", run.name, run.milliseconds,
               run.relative, run.min_cosine, run.chosen ? ", chosen" : "");
  for (const std::string& note : plan.notes) fmt::print("    {}\n", note);

  std::vector<Candidate> candidates = make_candidates(subject, plan);
  std::vector<TimedCandidate> timed_candidates;
  for (Candidate& each : candidates)
    timed_candidates.push_back(each.candidate->timed_candidate(subject.samples.calls.front()));
  MeasureOptions measuring;
  measuring.seconds = request.seconds;
  measuring.drop_ratio = 1.5;
  for (size_t i = 0; i < 2; ++i) timed_candidates[i].keep = true;
  const Measurements measured = measure(timed_candidates, measuring);
  const MeasuredTime& own = measured.rows[0];
  const MeasuredTime* best = nullptr;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < candidates.size(); ++i) {
    const MeasuredTime& row = measured.rows[i];
    if (i > 0 && !row.failed && (best == nullptr || row.relative < best->relative)) best = &row;
    fmt::print("  {:16} {:9.3f} ms ({:.3f} to {:.3f}), plan / this {:.4f}, {} rounds {}\n", row.name,
               row.median, row.interval.low, row.interval.high, paired_ratio(own, row), row.times.size(),
               row.reason);
    rows.push_back({{"name", row.name},
                    {"ms", row.median},
                    {"cosine", candidates[i].cosine},
                    {"plan_ratio", paired_ratio(own, row)},
                    {"rounds", row.times.size()}});
  }
  const double to_best = paired_ratio(own, *best), to_fp32 = paired_ratio(own, measured.rows[1]);
  const auto as_fast = [&](const MeasuredTime& other) {
    return paired_ratio(own, other) <= kMeasurable || own.median - other.median < kWorthIt;
  };
  const bool fast = as_fast(*best) && as_fast(measured.rows[1]);
  const bool exact = candidates[0].cosine >= kMinCosine;
  const bool quick = cold < kMaxColdSeconds && cached < kMaxCachedSeconds;
  met = met && fast && exact && quick && same && same_bytes;
  fmt::print("  plan: {:.4f} of {} (the best single one), {:.4f} of fp32, cosine {:.5f}{}{}{}\n\n", to_best,
             best->name, to_fp32, candidates[0].cosine, fast ? "" : ", MISSED the speed",
             exact ? "" : ", MISSED the cosine", quick ? "" : ", MISSED the planning time");
  std::fflush(stdout);
  return {{"batch", batch},           {"cold_seconds", cold},
          {"cached_seconds", cached}, {"same_plan", same},
          {"same_bytes", same_bytes}, {"quantizes", plan.quantizes()},
          {"best", best->name},       {"to_best", to_best},
          {"to_fp32", to_fp32},       {"cosine", candidates[0].cosine},
          {"rows", std::move(rows)}};
}

int run(const Request& request) {
  fmt::print("{}, {} threads, {}\n", std::filesystem::path(request.model).filename().string(),
             at::get_num_threads(), active_instruction_set());
  nlohmann::ordered_json json = {{"model", std::filesystem::path(request.model).filename().string()},
                                 {"threads", at::get_num_threads()},
                                 {"isa", active_instruction_set()}};
  bool met = true;
  for (const int64_t batch : request.batches) json["batches"].push_back(run_batch(request, batch, met));
  json["met"] = met;
  if (!request.json.empty()) {
    std::ofstream file(request.json);
    file << json.dump(1) << "\n";
    if (!file.flush()) throw std::runtime_error("cannot write " + request.json);
  }
  return met ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  CLI::App app("Whether autoquant's plan is as fast as the best single scheme");
  app.add_option("MODEL", request.model, "an encoder of (ids, mask) as .pt2, or a built-in model's name")
      ->required();
  app.add_option("--batch", request.batches, "batch sizes")->capture_default_str();
  app.add_option("--tokens", request.tokens, "of an encoder")->capture_default_str();
  app.add_option("--seconds", request.seconds, "of each long measurement")->capture_default_str();
  app.add_option("--seed", request.seed, "of the samples")->capture_default_str();
  app.add_option("--json", request.json, "a file for the figures");
  app.add_flag("--verbose", request.verbose, "the plans too");
  CLI11_PARSE(app, argc, argv);
  if (request.verbose) {
    set_log_sink([](LogLevel, std::string_view text) { fmt::print("    log: {}\n", text); });
  }
  try {
    const at::NoGradGuard no_grad;
    return run(request);
  } catch (const std::exception& error) {
    fmt::print(stderr, "autoquant_bench: {}\n", error.what());
    return 2;
  }
}
