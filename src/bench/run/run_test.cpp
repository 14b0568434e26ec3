// Jobs run in this process: what stands in a row, and what a failure looks like.
#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <new>

#include "base/errors.h"
#include "bench/run/candidate.h"
#include "bench/run/test_support.h"
#include "bench/suite/models.h"
#include "graph/test_support.h"
#include "halftone/bench/bench.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/compile/compilers.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

/// Runs the graph and does something to the results.
void register_odd_backend(const std::string& name, std::function<void(std::vector<c10::IValue>&)> change) {
  register_compiler({name, {"debug"}, "of the tests"},
                    [change](const std::shared_ptr<GraphModule>& module, const std::vector<c10::IValue>&,
                             const CompilerOptions&) -> CompiledFunction {
                      return [module, change](std::vector<c10::IValue> inputs) {
                        std::vector<c10::IValue> results = Session(module).run(std::move(inputs));
                        change(results);
                        return results;
                      };
                    });
}

void expect_readable(const BenchRow& row) {
  const BenchResults results{"", {}, {row}};
  EXPECT_EQ(bench_results_from_json(to_json(results), "test").rows.at(0).name, row.name);
}

void expect_measured(const BenchRow& row) {
  EXPECT_EQ(row.accuracy, "pass") << row.error;
  EXPECT_EQ(row.error, "");
  EXPECT_GT(row.speedup.value(), 0);
  EXPECT_GT(row.abs_latency.value(), 0);
  EXPECT_GT(row.compilation_latency.value(), 0);
  EXPECT_GE(row.spread.value(), 0);
  EXPECT_LE(row.speedup_low.value(), *row.speedup);
  EXPECT_GE(row.speedup_high.value_or(*row.speedup), *row.speedup);
  EXPECT_GT(row.rounds.value(), 0);
  EXPECT_GT(row.eager_peak_mem.value(), 0);
  EXPECT_GT(row.halftone_peak_mem.value(), 0);
  EXPECT_NEAR(row.compression_ratio.value(), *row.eager_peak_mem / *row.halftone_peak_mem, 1e-9);
  EXPECT_GT(row.bytes.value(), 0);
  expect_readable(row);
}

TEST(RunBench, RowOfAModelWithoutQuantization) {
  const BenchRow row = run_bench(short_job("tiny_mlp"));
  expect_measured(row);
  EXPECT_EQ(row.name, "tiny_mlp");
  EXPECT_EQ(row.batch_size, 4);
  EXPECT_EQ(row.dev, "cpu");
  EXPECT_EQ(row.mode, "inference");
  EXPECT_EQ(row.scheme, "noquant");
  EXPECT_EQ(row.backend, "halftone");
  EXPECT_GT(row.cosine.value(), 0.99999);
  EXPECT_EQ(row.unsupported_ops.value(), 0);
  double share = 0;
  for (const BenchLayer& layer : row.layers) {
    share += layer.share.value_or(0);
    EXPECT_EQ(layer.scheme, "fp32");
  }
  EXPECT_NEAR(share, 1, 1e-6);
  EXPECT_TRUE(row.plan.empty());
}

TEST(RunBench, CountsWhatIsLeftToTheInterpreter) {
  BenchJob job = short_job("lstm");
  job.performance = false;
  const BenchRow row = run_bench(job);
  EXPECT_EQ(row.accuracy, "pass") << row.error;
  EXPECT_GT(row.unsupported_ops.value(), 0);
}

TEST(RunBench, QuantizedLayersHaveSchemeTimeAndError) {
  BenchJob job = short_job("mlp");
  job.scheme = "int8dynamic";
  const BenchRow row = run_bench(job);
  expect_measured(row);
  EXPECT_LT(row.cosine.value(), 1);
  EXPECT_GT(row.cosine.value(), 0.98);
  BenchJob plain = short_job("mlp");
  plain.performance = plain.layers = false;
  EXPECT_LT(*row.bytes, *run_bench(plain).bytes / 3);
  int quantized = 0;
  for (const BenchLayer& layer : row.layers) {
    if (layer.scheme != "int8dq") continue;
    ++quantized;
    EXPECT_EQ(layer.kind, "linear");
    EXPECT_GT(layer.ms.value(), 0) << layer.layer;
    EXPECT_GT(layer.error.value(), 0) << layer.layer;
    EXPECT_LT(layer.error.value(), 0.02) << layer.layer;
  }
  EXPECT_EQ(quantized, 5);
}

TEST(RunBench, EverySchemeRunsOnAPerceptron) {
  for (const std::string& scheme : bench_schemes()) {
    if (scheme == "autoquant") continue;  // below
    BenchJob job = short_job("mlp");
    job.scheme = scheme;
    job.performance = job.layers = false;
    const BenchRow row = run_bench(job);
    EXPECT_EQ(row.accuracy, "pass") << scheme << ": " << row.error;
    EXPECT_FALSE(row.speedup.has_value());
    EXPECT_FALSE(row.eager_peak_mem.has_value());
  }
}

TEST(RunBench, LayersOfAnyWidthAreQuantized) {
  BenchJob job = short_job("tiny_mlp");
  job.scheme = "int4weightonly";
  job.performance = false;
  const BenchRow row = run_bench(job);
  EXPECT_EQ(row.accuracy, "pass") << row.error;
  std::map<std::string, int> schemes;
  for (const BenchLayer& layer : row.layers) {
    ++schemes[layer.scheme];
    EXPECT_EQ(layer.reason.empty(), layer.scheme == "int4wo") << layer.layer << ": " << layer.reason;
  }
  EXPECT_EQ(schemes, (std::map<std::string, int>{{"int4wo", 5}}));
}

TEST(RunBench, ModelsWithNothingToQuantizeAreSkippedAndSaySo) {
  for (const std::string scheme : {"int8dynamic", "autoquant"}) {
    BenchJob job = short_job("unet");
    job.scheme = scheme;
    const BenchRow row = run_bench(job);
    EXPECT_EQ(row.accuracy, "pass_due_to_skip") << scheme;
    EXPECT_THAT(row.error, HasSubstr("nothing to quantize"));
    EXPECT_FALSE(row.speedup.has_value());
    expect_readable(row);
  }
}

TEST(RunBench, AutoquantBringsItsPlan) {
  BenchJob job = short_job("tiny_mlp");
  job.scheme = "autoquant";
  const BenchRow row = run_bench(job);
  expect_measured(row);
  ASSERT_EQ(row.plan.size(), 5U);
  for (const BenchChoice& choice : row.plan) {
    EXPECT_FALSE(choice.choice.empty());
    EXPECT_FALSE(choice.reason.empty());
    EXPECT_FALSE(choice.candidates.empty());
  }
}

TEST(RunBench, OtherBackendsOfGraphs) {
  for (const std::string backend : {"eager", "ts"}) {
    BenchJob job = short_job("tiny_mlp");
    job.backend = backend;
    const BenchRow row = run_bench(job);
    expect_measured(row);
    EXPECT_FALSE(row.unsupported_ops.has_value());
    EXPECT_TRUE(row.layers.empty());
  }
}

TEST(RunBench, TrainingComparesResultsAndGradients) {
  for (const std::string backend : {"halftone", "aot_eager"}) {
    BenchJob job = short_job("tiny_mlp");
    job.mode = "training";
    job.backend = backend;
    const BenchRow row = run_bench(job);
    expect_measured(row);
    EXPECT_EQ(row.mode, "training");
    EXPECT_GT(row.cosine.value(), 0.9999);
  }
}

TEST(RunBench, TrainingOfBatchNorms) {
  BenchJob job = short_job("unet");
  job.mode = "training";
  job.performance = false;
  const BenchRow row = run_bench(job);
  EXPECT_EQ(row.accuracy, "pass") << row.error;
}

TEST(RunBench, BatchAndThreadsOfTheJob) {
  BenchJob job = short_job("tiny_mlp");
  job.batch_size = 9;
  job.threads = 1;
  job.performance = false;
  const BenchRow row = run_bench(job);
  EXPECT_EQ(row.accuracy, "pass") << row.error;
  EXPECT_EQ(row.batch_size, 9);
}

TEST(RunBench, WrongAnswersFailAccuracy) {
  register_odd_backend("test_wrong",
                       [](std::vector<c10::IValue>& results) { results[0] = results[0].toTensor() + 0.01; });
  register_odd_backend("test_nan",
                       [](std::vector<c10::IValue>& results) { results[0] = results[0].toTensor() / 0; });
  for (const std::string backend : {"test_wrong", "test_nan"}) {
    BenchJob job = short_job("tiny_mlp");
    job.backend = backend;
    job.performance = false;
    const BenchRow row = run_bench(job);
    EXPECT_EQ(row.accuracy, "fail_accuracy") << backend;
    EXPECT_FALSE(row.error.empty());
    expect_readable(row);
  }
}

TEST(RunBench, WhatABackendThrowsIsARow) {
  register_odd_backend(
      "test_throws", [](std::vector<c10::IValue>&) { fail(ErrorCode::kUnsupported, "no kernel for this"); });
  register_odd_backend("test_memory", [](std::vector<c10::IValue>&) { throw std::bad_alloc(); });
  register_odd_backend("test_strange", [](std::vector<c10::IValue>&) { throw 3; });
  BenchJob job = short_job("tiny_mlp");
  job.backend = "test_throws";
  BenchRow row = run_bench(job);
  EXPECT_EQ(row.accuracy, "fail_to_run");
  EXPECT_THAT(row.error, HasSubstr("no kernel for this"));
  EXPECT_FALSE(row.speedup.has_value());
  job.backend = "test_memory";
  EXPECT_EQ(run_bench(job).accuracy, "OOM");
  job.backend = "test_strange";
  row = run_bench(job);
  EXPECT_EQ(row.accuracy, "fail_to_run");
  EXPECT_THAT(row.error, HasSubstr("no exception"));
}

TEST(RunBench, FilesThatAreNoModels) {
  const BenchFolder folder;
  const std::string broken = (folder.path / "broken.pt2").string();
  std::ofstream(broken) << "no zip";
  for (const std::string& path : {broken, (folder.path / "missing.ht").string()}) {
    const BenchRow row = run_bench(short_job(path));
    EXPECT_EQ(row.accuracy, "model_fail_to_load") << path;
    EXPECT_FALSE(row.error.empty());
    EXPECT_THAT(row.name, ::testing::Not(HasSubstr("/")));
  }
}

TEST(RunBench, CheckpointsOfGraphsWithAnyBatch) {
  const SuiteModel model = make_suite_model("tiny_mlp");
  CaptureOptions options;
  options.dynamic = {{"input0", 0, "batch", 1, 64}};
  const auto graph = capture(*model.module, model.forward, model.sample(4, 0).args, options);
  graph->sample_inputs = model.sample(4, 0).args;
  const BenchFolder folder;
  const std::string path = (folder.path / "tiny.ht").string();
  save_checkpoint(*graph, path);
  BenchJob job = short_job(path);
  BenchRow row = run_bench(job);
  expect_measured(row);
  EXPECT_EQ(row.name, "tiny.ht");
  EXPECT_EQ(row.batch_size, 4);
  job.batch_size = 10;
  job.performance = false;
  row = run_bench(job);
  EXPECT_EQ(row.accuracy, "pass") << row.error;
  EXPECT_EQ(row.batch_size, 10);
}

TEST(RunBench, AutoquantNeverPlansOnTheCallsOfTheRow) {
  BenchJob job = short_job("tiny_mlp");
  job.scheme = "autoquant";
  BenchModel model(job);
  const InferenceCandidate candidate(job, model);
  // As many calls as calibration has tell which ones it was.
  ASSERT_NE(model.calibration().calls.size(), model.samples().size());
  EXPECT_EQ(candidate.plan()->layers.at(0).shapes.at(0).calls,
            static_cast<int64_t>(model.calibration().calls.size()));
  for (const auto& others : {model.calibration().calls, model.calibration().held_out}) {
    ASSERT_FALSE(others.empty());
    for (const Sample& other : others) {
      for (const Sample& own : model.samples())
        EXPECT_FALSE(own.args.at(0).toTensor().equal(other.args.at(0).toTensor()));
    }
  }
}

TEST(RunBench, FileOfOneBatchTakesNoOther) {
  const SuiteModel model = make_suite_model("tiny_mlp");
  const auto graph = capture(*model.module, model.forward, model.sample(4, 0).args);
  graph->sample_inputs = model.sample(4, 0).args;
  const BenchFolder folder;
  BenchJob job = short_job((folder.path / "fixed.ht").string());
  save_checkpoint(*graph, job.model);
  job.batch_size = 5;
  const BenchRow row = run_bench(job);
  EXPECT_EQ(row.accuracy, "model_fail_to_load");
  EXPECT_THAT(row.error, HasSubstr("fixed size"));
}

TEST(RunBench, FolderOfExportedModels) {
  const std::vector<std::string> models = select_bench_models(HALFTONE_EXPORTED_SUITE);
  ASSERT_EQ(models.size(), 2U);
  for (const std::string& model : models) {
    BenchJob job = short_job(model);
    job.scheme = "int8weightonly";
    job.batch_size = 3;
    const BenchRow row = run_bench(job);
    expect_measured(row);
    EXPECT_EQ(row.batch_size, 3);
    EXPECT_FALSE(row.layers.empty());
  }
}

}  // namespace
}  // namespace halftone
