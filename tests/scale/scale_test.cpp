// Graphs of real depth: whatever walks a graph takes time in proportion to its nodes, or nearly. Processor
// time is compared between 50 and 200 layers, so that the machine's speed does not matter.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <ctime>
#include <filesystem>

#include "compiler/ops/ops.h"
#include "compiler/passes/alias.h"
#include "compiler/passes/passes.h"
#include "halftone/autograd/aot_autograd.h"
#include "halftone/base/log.h"
#include "halftone/capture/capture_module.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/compile/compile.h"
#include "halftone/compile/compile_module.h"
#include "halftone/compile/compilers.h"
#include "halftone/compile/minify.h"
#include "halftone/ptq/lower.h"
#include "halftone/ptq/ptq.h"
#include "halftone/ptq/qconfig.h"
#include "halftone/quant/diagnose.h"
#include "halftone/quant/quantize.h"
#include "halftone/tune/autoquant.h"
#include "scale/decoder.h"

namespace halftone {
namespace {

constexpr int64_t kShallow = 50, kDeep = 200;
constexpr double kMaxSeconds = 20;
constexpr double kMaxGrowth = 6;      // four times the layers
constexpr double kMaxCutGrowth = 8;   // n^1.5
constexpr double kMinSeconds = 0.01;  // shorter ones are as good as equal
constexpr int kAttempts = 12;         // the best of them counts: neighbours cost caches, not the algorithm

/// Of all threads of the process.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

at::Tensor some_ids(int64_t first = 1) {
  return at::arange(first, first + kTokens).view({1, kTokens});
}

/// A model of one depth and what is made of it once.
struct Subject {
  explicit Subject(int64_t depth) : model(std::make_shared<Decoder>(depth)) {
    model->eval();
    graph = capture(*model, std::tuple(some_ids()));
  }
  ForwardFunction forward() const {
    return [model = model](const std::vector<c10::IValue>& args) -> c10::IValue {
      return model->forward(args.at(0).toTensor());
    };
  }
  std::string file() const {
    return (std::filesystem::temp_directory_path() /
            ("halftone_scale_" + std::to_string(model->list.size()) + "_" + std::to_string(getpid()) + ".ht"))
        .string();
  }
  std::shared_ptr<Decoder> model;
  std::shared_ptr<GraphModule> graph;
};

class Scale : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    at::set_num_threads(1);
    shallow = new Subject(kShallow);
    deep = new Subject(kDeep);
  }
  static void TearDownTestSuite() {
    delete shallow;
    delete deep;
  }

  /// The best of some attempts; one is enough if it is good. The host's speed changes by a third within
  /// seconds, so a ratio is taken within an attempt: the deep model between two runs of the shallow one, of
  /// which the quicker counts.
  static void expect_growth(const std::string& what, const std::function<void(const Subject&)>& run,
                            double most = kMaxGrowth) {
    double few = 1, many = 1e9;
    const auto timed = [&](const Subject& subject) {
      const double start = processor_seconds();
      run(subject);
      return processor_seconds() - start;
    };
    for (int attempt = 0; attempt < kAttempts && (many >= kMaxSeconds || many > most * few); ++attempt) {
      const double before = timed(*shallow);
      const double deep_seconds = timed(*deep);
      const double shallow_seconds = std::max(std::min(before, timed(*shallow)), kMinSeconds);
      if (deep_seconds / shallow_seconds < many / few) few = shallow_seconds, many = deep_seconds;
    }
    fmt::print("{:<40} {:8.3f} s {:8.3f} s {:6.1f} x\n", what, few, many, many / few);
    EXPECT_LT(many, kMaxSeconds) << what;
    EXPECT_LE(many, most * few) << what << ": " << few << " s, then " << many << " s";
  }

  static inline Subject* shallow = nullptr;
  static inline Subject* deep = nullptr;
};

TEST_F(Scale, TheModelIsAsLargeAsItSays) {
  EXPECT_GT(deep->graph->graph().nodes().size(), 9'500U);
}

TEST_F(Scale, Capture) {
  expect_growth("capture", [](const Subject& subject) { capture(*subject.model, std::tuple(some_ids())); });
}

TEST_F(Scale, TextForm) {
  expect_growth("print, parse",
                [](const Subject& subject) { parse_graph(print_graph(subject.graph->graph())); });
}

TEST_F(Scale, EveryPass) {
  register_fused_operators();
  struct Run {
    explicit Run(const Subject& subject)
        : graph(subject.graph->graph().clone()), tensors(*subject.graph->tensors()) {}
    std::unique_ptr<Graph> graph;
    TensorMap tensors;
    std::vector<std::string> log;
  };
  // Each pass begins with what those before it made, so all attempts of one are made on copies.
  std::map<const Subject*, std::unique_ptr<Run>> runs;
  for (const Subject* subject : {shallow, deep}) runs[subject] = std::make_unique<Run>(*subject);
  for (const compiler::Pass& pass : compiler::all_passes()) {
    std::map<const Subject*, std::unique_ptr<Run>> done;
    expect_growth("pass " + pass.name, [&](const Subject& subject) {
      const Run& before = *runs.at(&subject);
      auto run = std::make_unique<Run>(subject);
      run->graph = before.graph->clone();
      run->tensors = before.tensors;
      compiler::PassContext context{*run->graph, run->tensors, subject.graph->ranges, run->log};
      context.mutates = compiler::AliasSets(*run->graph).any_written();
      context.pass = pass.name;
      pass.rewrite(context);
      run->graph->erase_dead_nodes();
      EXPECT_TRUE(lint(*run->graph).empty());
      done[&subject] = std::move(run);
    });
    runs = std::move(done);
  }
}

TEST_F(Scale, CompileAndFirstRun) {
  expect_growth("compile", [](const Subject& subject) { compile(subject.graph); });
  std::map<const Subject*, std::shared_ptr<const CompiledGraph>> models;
  for (const Subject* subject : {shallow, deep}) models[subject] = compile(subject->graph, {.max_plans = 1});
  expect_growth("plan and run", [&](const Subject& subject) {
    models[&subject] = compile(subject.graph);
    models[&subject]->run({some_ids()});
  });
  expect_growth("interpret", [](const Subject& subject) { Session(subject.graph).run({some_ids()}); });
}

TEST_F(Scale, QuantizeWithEveryScheme) {
  for (const Scheme& scheme : schemes()) {
    if (scheme.config.is_noquant()) continue;
    expect_growth("quantize_ " + scheme.names.front(), [&](const Subject& subject) {
      QuantizeOptions options;
      options.embeddings = true;
      quantize_(*subject.graph->clone(), scheme.config, options);
    });
  }
}

TEST_F(Scale, QuantizeModules) {
  expect_growth("quantize_ a C++ module", [](const Subject& subject) {
    Decoder fresh(static_cast<int64_t>(subject.model->list.size()));
    quantize_(fresh, QuantConfig("int8wo"));
  });
}

TEST_F(Scale, PostTrainingQuantization) {
  expect_growth("prepare, calibrate, convert, lower", [](const Subject& subject) {
    PreparedModel prepared =
        prepare(*subject.graph, static_int8_mapping(), {some_ids()}, builtin_backend_config("native"));
    prepared.calibrate({some_ids()});
    const ConvertResult converted = convert(prepared);
    lower(*converted.module);
  });
}

TEST_F(Scale, PlanningOfAutoquant) {
  // Its own time limit ends it, and what it has measured once it does not measure again: a ratio of two runs
  // says nothing. What must not happen is that the depth makes it overrun.
  const double start = processor_seconds();
  AutoquantOptions options;
  options.time_limit = 1;
  options.schemes = {"int8wo"};
  plan_autoquant(deep->graph, {}, options);
  EXPECT_LT(processor_seconds() - start, kMaxSeconds);
}

// The model runs once for each layer, by contract: the same few layers in both.
TEST_F(Scale, Diagnose) {
  expect_growth("diagnose four layers", [](const Subject& subject) {
    QuantizeOptions options;
    options.include = R"(layers\.[0-3]\.down)";
    EXPECT_EQ(diagnose(*subject.graph, QuantConfig("int8wo"), {{some_ids()}}, options).layers.size(), 4U);
  });
}

TEST_F(Scale, Minify) {
  set_log_sink({});
  expect_growth("minify", [](const Subject& subject) {
    const MinifiedCase found = minify({subject.graph, {some_ids()}}, lookup_compiler("relu_compile_error"));
    EXPECT_EQ(found.nodes_after, 1U);
  });
}

TEST_F(Scale, SaveAndLoad) {
  expect_growth("save", [](const Subject& subject) { save_checkpoint(*subject.graph, subject.file()); });
  expect_growth("load", [](const Subject& subject) { load_checkpoint(subject.file()); });
  expect_growth("verify", [](const Subject& subject) {
    EXPECT_TRUE(verify_checkpoint(subject.file()).findings.empty());
  });
  for (const Subject* subject : {shallow, deep}) std::filesystem::remove(subject->file());
}

TEST_F(Scale, CompiledTraining) {
  for (const bool minimal : {false, true}) {
    expect_growth(
        minimal ? "AotAutograd, minimal cut" : "AotAutograd, default partition",
        [&](const Subject& subject) {
          AotOptions options;
          options.fw_compiler = nop_compiler();
          if (minimal)
            options.partition_fn = [](const JointGraph& joint) {
              return min_cut_rematerialization_partition(joint);
            };
          const ForwardFunction compiled =
              AotAutograd(options)(*subject.model, subject.forward(), {some_ids()});
          compiled({some_ids()}).toTensor().sum().backward();
        },
        minimal ? kMaxCutGrowth : kMaxGrowth);
  }
}

}  // namespace
}  // namespace halftone
