// Backends leave no memory behind. Apart from the other tests, because it measures the process.
#include <torch/nn/module.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "backend/lifecycle/test_support.h"

namespace halftone {
namespace {

constexpr double kMegabyte = 1 << 20;

double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / kMegabyte;
}

size_t entries(const char* folder) {
  const std::filesystem::directory_iterator all(folder), end;
  return static_cast<size_t>(std::distance(all, end));
}

/// Four linears of 26 MB each.
std::shared_ptr<GraphModule> large_model() {
  constexpr int64_t kWidth = 2560;
  std::string inputs, nodes;
  TensorMap tensors;
  for (int i = 0; i < 4; ++i) {
    const std::string name = fmt::format("layer{}.weight", i);
    tensors.emplace(name, test_weight({kWidth, kWidth}));
    inputs += fmt::format("%w{}: parameter \"{}\" f32[{}, {}], ", i, name, kWidth, kWidth);
    nodes += fmt::format("  %h{}: f32[2, {}] = aten::linear(%h{}, %w{})  @ \"layer{}\" \"Linear\"\n", i + 1,
                         kWidth, i, i, i);
  }
  return module_from_text(
      fmt::format("graph({}%h0: user \"x\" f32[2, {}]) {{\n{}  return %h4\n}}", inputs, kWidth, nodes),
      std::move(tensors));
}

struct Large {
  std::string type, config;
  double at_least;  ///< megabytes that the recipe makes of a model of 100
};
void PrintTo(const Large& large, std::ostream* out) {
  *out << large.type << large.config;
}

class DeactivateMemory : public testing::TestWithParam<Large> {};
INSTANTIATE_TEST_SUITE_P(Kinds, DeactivateMemory,
                         testing::Values(Large{"HalftoneBackend", "{}", 90},
                                         Large{"HalftoneBackend", R"({"precision":"bfloat16"})", 45},
                                         Large{"QuantBackend", R"({"quantization":"int8dq"})", 23},
                                         Large{"QuantBackend", R"({"quantization":"int4wo"})", 12}));

TEST_P(DeactivateMemory, GoesBackToTheSystem) {
  const auto model = large_model();
  const std::vector<c10::IValue> inputs{test_weight({2, 2560})};
  Backend backend(GetParam().type, GetParam().config);
  backend.build(model, {}, {{inputs, {}}});
  const at::Tensor expected = tensor_of(backend.infer(inputs)).clone();
  backend.deactivate();
  const double inactive = resident_megabytes();
  for (int round = 0; round < 3; ++round) {
    backend.activate();
    EXPECT_TRUE(at::equal(tensor_of(backend.infer(inputs)), expected));
    const double active = resident_megabytes();
    backend.deactivate();
    const double after = resident_megabytes();
    EXPECT_GE(active - inactive, GetParam().at_least) << "measures something";
    EXPECT_LE(after, inactive + 4) << "active: " << active;
    std::printf("%s %s: inactive %.0f MB, active %.0f MB, inactive again %.0f MB\n", GetParam().type.c_str(),
                GetParam().config.c_str(), inactive, active, after);
  }
}

TEST_P(DeactivateMemory, DestroyedBackendsLeaveNothingWithTheModel) {
  const auto model = large_model();
  const std::vector<c10::IValue> inputs{test_weight({2, 2560})};
  double first = 0;
  for (int round = 0; round < 3; ++round) {
    Backend(GetParam().type, GetParam().config).build(model, {}, {{inputs, {}}}).infer(inputs);
    if (round == 0) first = resident_megabytes();
  }
  EXPECT_LE(resident_megabytes(), first + 4);
}

struct ScaledModule : torch::nn::Module {
  ScaledModule() : weight(register_parameter("weight", test_weight({64, 64}))) {}
  at::Tensor weight;
};

ModelSource cpp_source() {
  const auto module = std::make_shared<ScaledModule>();
  return {module, [module = module.get()](const std::vector<c10::IValue>& args) -> c10::IValue {
            return at::matmul(args.at(0).toTensor(), module->weight);
          }};
}

struct Cycle {
  std::string name, type, config;
  bool cpp = false;
};
void PrintTo(const Cycle& cycle, std::ostream* out) {
  *out << cycle.name;
}

class BuildAndDestroy : public testing::TestWithParam<Cycle> {};
INSTANTIATE_TEST_SUITE_P(Kinds, BuildAndDestroy,
                         testing::Values(Cycle{"Eager", "EagerBackend", "{}"},
                                         Cycle{"EagerOfCppModule", "EagerBackend", "{}", true},
                                         Cycle{"TorchScript", "TorchScriptBackend", "{}"},
                                         Cycle{"Halftone", "HalftoneBackend", "{}"},
                                         Cycle{"HalftoneOfCppModule", "HalftoneBackend", "{}", true},
                                         Cycle{"Quant", "QuantBackend", R"({"quantization":"int8dq"})"}),
                         [](const auto& info) { return info.param.name; });

TEST_P(BuildAndDestroy, AThousandTimesGrowsNothing) {
  const auto cycles = [](int count) {
    for (int i = 0; i < count; ++i) {
      Backend backend(GetParam().type, GetParam().config);
      const std::vector<Sample> samples{{{test_input(2)}, {}}};
      backend.build(GetParam().cpp ? cpp_source() : ModelSource(small_model()), {}, samples);
      backend.infer(samples[0].args);
    }
  };
  cycles(100);  // caches of the process fill up
  const double memory = resident_megabytes();
  const size_t files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  cycles(1000);
  const double growth = resident_megabytes() - memory;
  EXPECT_EQ(entries("/proc/self/fd"), files);
  EXPECT_EQ(entries("/proc/self/task"), threads);
  EXPECT_LE(growth, 2) << "megabytes: more than 2 KB a cycle";
  std::printf("%s: %.0f MB, after 1,000 cycles %+.2f MB, %zu files, %zu threads\n", GetParam().name.c_str(),
              memory, growth, files, threads);
}

}  // namespace
}  // namespace halftone
