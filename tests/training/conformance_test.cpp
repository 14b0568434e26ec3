// Every model with every way to compile it: results, gradients and buffers are eager's.
#include "halftone/autograd/aot_autograd.h"
#include "halftone/compile/compilers.h"
#include "training/steps.h"

namespace halftone {
namespace {

struct Case {
  std::string model, backend;
};

void PrintTo(const Case& value, std::ostream* stream) {
  *stream << value.model << " with " << value.backend;
}

AotOptions options_of(const std::string& backend) {
  AotOptions options;
  options.name = backend;
  options.fw_compiler = nop_compiler();
  if (backend == "aot_eager") return options;
  options.partition_fn = [](const JointGraph& joint) { return min_cut_rematerialization_partition(joint); };
  options.decompositions = default_decompositions;
  if (backend == "aot_eager_decomp_partition") return options;
  if (backend == "core_decompositions") options.decompositions = core_decompositions;
  if (backend == "aot_ts") options.fw_compiler = ts_compiler();
  if (backend == "halftone") options.fw_compiler = lookup_compiler("halftone");
  return options;
}

class CompiledTraining : public ::testing::TestWithParam<Case> {};

TEST_P(CompiledTraining, GivesWhatEagerGives) {
  TrainingModel model = training_model(GetParam().model);
  const ModuleBytes before = ModuleBytes::of(*model.module);
  const StepResult expected = training_step(model, model.forward);
  torch::manual_seed(3);
  const AotAutograd compiler(options_of(GetParam().backend));
  const ForwardFunction compiled = compiler(*model.module, model.forward, model.examples);
  for (int step = 0; step < 2; ++step) expect_same_step(training_step(model, compiled), expected, "from C++");
  model.module->zero_grad();
  EXPECT_EQ(ModuleBytes::of(*model.module).flags, before.flags);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const TrainingModel& model : training_models())
    for (const char* backend :
         {"aot_eager", "aot_eager_decomp_partition", "core_decompositions", "aot_ts", "halftone"})
      all.push_back({model.name, backend});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, CompiledTraining, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.model + "_" + info.param.backend; });

}  // namespace
}  // namespace halftone
