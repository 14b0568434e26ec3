// The promises of autoquant, in a short form, on MiniLM. At length: bench/autoquant.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "halftone/capture/capture.h"
#include "halftone/tune/autoquant.h"
#include "halftone/tune/measure.h"
#include "halftone/tune/modules.h"
#include "tune/candidate_run.h"
#include "tune/report/fingerprint.h"
#include "tune/samples/sample_layout.h"
#include "tune/test_support.h"

namespace halftone::aq {
namespace {

// Beside neighbours on the machine; the benchmark asks for more.
constexpr double kNoise = 1.05;

double seconds_of_call(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Samples encoder_calls(const GraphModule& module, int64_t batch) {
  at::manual_seed(1);
  const int64_t words = module.tensor("embeddings.word_embeddings.weight").size(0);
  std::vector<Sample> calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(sample_from_flat(
        module, {at::randint(words, {batch, 64}, at::kLong), at::ones({batch, 64}, at::kLong)}));
  }
  return calls;
}

TEST(AutoquantMiniLm, PlansQuicklyReplaysExactlyAndIsNotSlower) {
  if (!std::filesystem::exists(HALFTONE_MINILM)) GTEST_SKIP() << "no " << HALFTONE_MINILM;
  clear_autoquant_cache();
  const TestFolder folder;
  const auto module = load_pt2(HALFTONE_MINILM);
  const Samples samples = encoder_calls(*module, 1);
  AutoquantOptions options;
  options.cache_dir = folder.path.string();
  const auto quantized = module->clone();
  AutoquantPlan plan;
  EXPECT_LT(seconds_of_call([&] { plan = autoquant(quantized, samples, options); }), 30);
  EXPECT_EQ(plan.layers.size(), 36U);
  EXPECT_GE(plan.cosine, 0.995);
  // Four different groups a block, the first one of another kind: not 36 layers.
  EXPECT_LE(autoquant_cache().size(), 5 * (default_autoquant_schemes().size() + 1));
  clear_autoquant_cache();
  AutoquantPlan again;
  EXPECT_LT(seconds_of_call([&] { again = plan_autoquant(module->clone(), samples, options); }), 2);
  EXPECT_EQ(again, plan);
  const auto replayed = module->clone();
  if (plan.quantizes()) apply_plan(*replayed, again);
  EXPECT_EQ(model_hash(*replayed), model_hash(*quantized));

  std::vector<std::unique_ptr<CandidateRun>> candidates;
  const auto add = [&](const std::string& name, const std::shared_ptr<const BackendRecipe>& recipe) {
    candidates.push_back(std::make_unique<CandidateRun>(TuneCandidate{name, recipe}));
    candidates.back()->build(module, samples.calls, {});
  };
  add("plan", layerwise_backend_recipe(plan.overrides()));
  add("fp32", halftone_backend_recipe());
  add("int8dq", quant_backend_recipe({.quantization = "int8dq", .quantization_config = {}}));
  std::vector<TimedCandidate> timed_candidates;
  for (const auto& candidate : candidates)
    timed_candidates.push_back(candidate->timed_candidate(samples.calls.front()));
  MeasureOptions measuring;
  measuring.seconds = 3;
  const Measurements measured = measure(timed_candidates, measuring);
  EXPECT_LE(paired_ratio(measured.rows[0], measured.rows[1]), kNoise) << plan.to_text();
  EXPECT_LE(paired_ratio(measured.rows[0], measured.rows[2]), kNoise) << plan.to_text();
}

}  // namespace
}  // namespace halftone::aq
