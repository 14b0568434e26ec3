// Dropout in compiled training: one operator, whose mask takes a byte for each element and is eager's.
#include <ATen/ops/dropout.h>

#include "halftone/autograd/aot_autograd.h"
#include "training/steps.h"

namespace halftone {
namespace {

using Args = std::vector<c10::IValue>;
using Forward = std::function<at::Tensor(const at::Tensor&)>;

/// A model without parameters that is this function.
TrainingModel model_of(const Forward& forward, const at::Tensor& example) {
  const ForwardFunction run = [forward](const Args& args) -> c10::IValue {
    return forward(args[0].toTensor());
  };
  return {"dropout", std::make_shared<torch::nn::Module>("dropout"), run, {example}};
}

/// What the forward graph calls and saves.
struct Compiled {
  ForwardFunction function;
  std::vector<std::string> targets;
  int64_t saved = 0;
};

Compiled compiled(TrainingModel& model) {
  Compiled result;
  AotOptions options;
  options.fw_compiler = nop_compiler();
  options.partition_fn = [&](const JointGraph& joint) {
    PartitionedGraphs parts = default_partition(joint);
    for (const auto& node : parts.forward->nodes()) result.targets.push_back(node->target());
    result.saved = saved_bytes(parts);
    return parts;
  };
  result.function = AotAutograd(options)(*model.module, model.forward, model.examples);
  return result;
}

TEST(CompiledDropout, IsOneOperatorAndSavesBytes) {
  TrainingModel model = model_of([](const at::Tensor& x) { return at::dropout(x, 0.3, true); },
                                 seeded({6, 7}).requires_grad_());
  const Compiled dropout = compiled(model);
  EXPECT_EQ(dropout.targets, std::vector<std::string>{"aten::native_dropout"});
  EXPECT_EQ(dropout.saved, 6 * 7);
}

TEST(CompiledDropout, DrawsAsEagerWhateverTheOrderOfMemory) {
  const std::vector<Forward> forwards = {
      [](const at::Tensor& x) { return at::dropout(x, 0.3, true); },
      [](const at::Tensor& x) { return at::dropout(x.transpose(0, 2) * 2, 0.6, true); },
      [](const at::Tensor& x) { return at::dropout(x.transpose(1, 3), 0.1, true).relu(); },
      [](const at::Tensor& x) { return at::dropout(at::dropout(x.slice(3, 1, 4), 0.5, true), 0.5, true); },
  };
  for (size_t i = 0; i < forwards.size(); ++i) {
    TrainingModel model = model_of(forwards[i], seeded({3, 4, 5, 6}).requires_grad_());
    const Compiled dropout = compiled(model);
    for (const int64_t seed : {1, 2})
      expect_same_step(training_step(model, dropout.function, seed),
                       training_step(model, model.forward, seed), fmt::format("forward {}", i));
  }
}

TEST(CompiledDropout, ThatDrawsNothingStaysWhatItWas) {
  for (const auto& [p, train] : std::vector<std::pair<double, bool>>{{0, true}, {1, true}, {0.5, false}}) {
    TrainingModel model =
        model_of([p = p, train = train](const at::Tensor& x) { return at::dropout(x * 3, p, train); },
                 seeded({4, 5}).requires_grad_());
    const Compiled dropout = compiled(model);
    EXPECT_THAT(dropout.targets, ::testing::Not(::testing::Contains("aten::native_dropout")));
    expect_same_step(training_step(model, dropout.function), training_step(model, model.forward),
                     fmt::format("p = {}, train = {}", p, train));
  }
}

}  // namespace
}  // namespace halftone
