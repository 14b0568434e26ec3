#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/errors.h"
#include "base/nearest.h"
#include "capture/module/snapshots.h"
#include "harness/suite/builders.h"
#include "harness/suite/weights.h"

namespace halftone {
namespace {

struct SuiteEntry {
  BenchModelInfo info;
  SuiteModel (*make)();
};

const std::vector<SuiteEntry>& suite_entries() {
  static const std::vector<SuiteEntry> entries = {
      {{"mlp_mixer", "Mixer-S/16: 8 blocks, width 512, 196 tokens; images 224 x 224", 1}, make_mlp_mixer},
      {{"tiny_mlp", "perceptron, 5 layers of at most 48: too small for quantization to pay", 4},
       make_tiny_mlp},
  };
  return entries;
}

}  // namespace

const std::vector<BenchModelInfo>& bench_models() {
  static const std::vector<BenchModelInfo> infos = [] {
    std::vector<BenchModelInfo> all;
    for (const SuiteEntry& entry : suite_entries()) all.push_back(entry.info);
    return all;
  }();
  return infos;
}

Samples SuiteModel::samples(int64_t batch, size_t calls, uint64_t seed) const {
  std::vector<Sample> all;
  for (size_t i = 0; i < calls; ++i) all.push_back(sample(batch, seed * 1000 + i));
  return all;
}

SuiteModel make_suite_model(std::string_view name, uint64_t seed) {
  std::vector<std::string> known;
  for (const SuiteEntry& entry : suite_entries()) {
    known.push_back(entry.info.name);
    if (entry.info.name != name) continue;
    ModuleSnapshot random_state(nullptr);  // torch's constructors draw weights
    SuiteModel model = entry.make();
    random_state.restore_random_state();
    set_weights(*model.module, seed);
    model.module->eval();
    model.name = entry.info.name;
    return model;
  }
  fail(ErrorCode::kInvalidArgument, "there is no model \"{}\" in the suite{}", name,
       did_you_mean(name, known));
}

}  // namespace halftone
