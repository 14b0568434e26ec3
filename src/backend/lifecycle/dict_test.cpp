// to_dict and from_dict, and what components that save backends see of them.
#include <torch/nn/module.h>

#include "backend/lifecycle/test_support.h"

namespace halftone {
namespace {

class BackendDicts : public testing::TestWithParam<RecipeCase> {};
INSTANTIATE_TEST_SUITE_P(Kinds, BackendDicts, testing::ValuesIn(plain_recipes()),
                         [](const auto& info) { return info.param.name; });

TEST_P(BackendDicts, HoldTheOriginalModuleAndGiveTheSameBackend) {
  const Backend backend = built(GetParam().make());
  const at::Tensor expected = infer_one(backend, test_input());
  const BackendDict dict = backend.to_dict();
  EXPECT_EQ(dict.type, backend.name());
  EXPECT_EQ(dict.config, backend.config());
  EXPECT_EQ(dict.data.size(), test_samples().size());
  EXPECT_EQ(dict.device, at::Device(at::kCPU));
  const auto original = small_model();
  ASSERT_EQ(dict.module.size(), original->tensors()->size());
  for (const auto& [name, tensor] : dict.module)
    EXPECT_TRUE(at::equal(tensor, original->tensor(name))) << name;

  auto other = small_model();
  other->set_tensor("up.weight", at::zeros({96, 64}));
  DictReport report;
  Backend again = Backend::from_dict(other, dict, backend.name(), &report);
  EXPECT_TRUE(report.missing.empty() && report.unexpected.empty());
  EXPECT_EQ(again.state(), BackendState::kCheckpointLoaded);
  EXPECT_EQ(again.key(), backend.key());
  again.deploy();
  EXPECT_TRUE(at::equal(infer_one(again, test_input()), expected));
  EXPECT_TRUE(at::equal(other->tensor("up.weight"), original->tensor("up.weight")));
  EXPECT_EQ(again.to_dict().module.size(), dict.module.size());
}

/// As a file that holds converted weights only.
TEST_P(BackendDicts, ConvertedModulesAreTakenAsTheyAre) {
  const Backend backend = built(GetParam().make());
  const at::Tensor expected = infer_one(backend, test_input());
  BackendContent content = BackendAccess::content(backend);
  EXPECT_EQ(content.state, BackendState::kActive);
  ASSERT_TRUE(content.original && content.ready);
  content.original = nullptr;
  Backend again = BackendAccess::loaded(content);
  EXPECT_EQ(again.state(), BackendState::kCheckpointLoaded);
  again.activate();
  EXPECT_TRUE(at::equal(infer_one(again, test_input()), expected));
  expect_error(ErrorCode::kUnsupported, {again.name(), "original module"}, [&] { again.to_dict(); });
  again.deactivate();
  EXPECT_TRUE(BackendAccess::content(again).ready) << "what came from the file is still there";
  again.activate();
  EXPECT_TRUE(at::equal(infer_one(again, test_input()), expected));
}

Backend from(const BackendDict& dict, const std::shared_ptr<GraphModule>& module = small_model(),
             DictReport* report = nullptr) {
  return Backend::from_dict(module, dict, "QuantBackend", report);
}

TEST(FromDict, RefusesAnotherTypeAndAMissingModule) {
  const BackendDict dict = built(quant_backend_recipe()).to_dict();
  expect_error(ErrorCode::kInvalidArgument, {"QuantBackend", "EagerBackend"},
               [&] { Backend::from_dict(small_model(), dict, "EagerBackend"); });
  expect_error(ErrorCode::kInvalidArgument, {"module is required", "QuantBackend"},
               [&] { Backend::from_dict(std::nullopt, dict, "QuantBackend"); });
  expect_error(ErrorCode::kInvalidArgument, {"module is required"}, [&] { from(dict, nullptr); });
  BackendDict unknown = dict;
  unknown.type = "QuantBackand";
  expect_error(ErrorCode::kInvalidArgument, {"QuantBackand", "QuantBackend"},
               [&] { Backend::from_dict(small_model(), unknown, "QuantBackand"); });
  BackendDict field = dict;
  field.config = R"({"quantisation":"int8wo"})";
  expect_error(ErrorCode::kInvalidArgument, {"quantisation", "quantization"}, [&] { from(field); });
}

TEST(FromDict, LoadsAroundMissingAndUnexpectedKeysAndReportsThem) {
  BackendDict dict = built(quant_backend_recipe()).to_dict();
  dict.module.erase("up.bias");
  dict.module.emplace("old.weight", at::ones({3}));
  dict.module["down.bias"] = at::full({64}, 2, at::kDouble);
  const auto module = small_model();
  module->set_tensor("up.bias", at::full({96}, 5.f));
  DictReport report;
  const Backend backend = from(dict, module, &report);
  EXPECT_EQ(report.missing, std::vector<std::string>{"up.bias"});
  EXPECT_EQ(report.unexpected, std::vector<std::string>{"old.weight"});
  EXPECT_TRUE(at::equal(module->tensor("up.bias"), at::full({96}, 5.f))) << "keeps its value";
  EXPECT_TRUE(at::equal(module->tensor("down.bias"), at::full({64}, 2.f)));
  EXPECT_EQ(backend.state(), BackendState::kCheckpointLoaded);
}

TEST(FromDict, CopiesTheTensorsOfTheDict) {
  const BackendDict dict = built(quant_backend_recipe()).to_dict();
  const auto second = small_model();
  from(dict, second);
  for (const auto& [name, tensor] : dict.module) {
    EXPECT_FALSE(tensor.is_alias_of(second->tensor(name))) << name;
    EXPECT_TRUE(at::equal(tensor, second->tensor(name))) << name;
  }
  second->tensor("up.weight").zero_();
  EXPECT_GT(dict.module.at("up.weight").abs().max().item<float>(), 0);
}

TEST(FromDict, OtherShapesChangeNothing) {
  BackendDict dict = built(quant_backend_recipe()).to_dict();
  dict.module["down.bias"] = at::ones({64});
  dict.module["up.weight"] = at::ones({96, 65});
  const auto module = small_model();
  expect_error(ErrorCode::kInvalidArgument, {"QuantBackend", "up.weight", "65"}, [&] { from(dict, module); });
  EXPECT_TRUE(at::equal(module->tensor("down.bias"), small_model()->tensor("down.bias")));
}

TEST(FromDict, RefusesConvertedModulesOfAnotherConfig) {
  BackendDict dict =
      built(quant_backend_recipe({.quantization = "int8wo", .quantization_config = {}})).to_dict();
  dict.module.clear();
  const auto module = small_model();
  quantize_(*module, "int4wo");
  Backend backend = from(dict, module);
  expect_error(ErrorCode::kInvalidArgument, {"QuantBackend", "quantized already"},
               [&] { backend.activate(); });
  EXPECT_EQ(backend.state(), BackendState::kCheckpointLoaded);
}

struct Scaled : torch::nn::Module {
  Scaled()
      : scale(register_parameter("scale", at::full({4}, 2.f))),
        spare(register_buffer("spare", at::ones({2}))) {}
  at::Tensor scale, spare;
};

ModelSource source_of(const std::shared_ptr<Scaled>& module) {
  return {module, [module](const std::vector<c10::IValue>& args) -> c10::IValue {
            return args.at(0).toTensor() * module->scale;
          }};
}

TEST(FromDict, WorksForCppModules) {
  const auto module = std::make_shared<Scaled>();
  Backend backend("HalftoneBackend");
  GraphSpec spec{.name = "scaled"};
  spec.dynamic.push_back({.input = "input0", .dim = 0, .symbol = "rows"});
  backend.build(source_of(module), spec, {{{at::ones({3, 4})}, {}}});
  const BackendDict dict = backend.to_dict();
  EXPECT_EQ(dict.module.size(), 2u) << "what the graph does not read is the module's state too";

  const auto other = std::make_shared<Scaled>();
  const at::Tensor parameter = other->scale;
  {
    const at::NoGradGuard no_grad;
    parameter.zero_();
  }
  Backend again = Backend::from_dict(source_of(other), dict, "HalftoneBackend");
  EXPECT_TRUE(at::equal(parameter, module->scale)) << "the module's own tensor took the values";
  again.activate();
  EXPECT_TRUE(at::equal(infer_one(again, at::ones({7, 4})), at::full({7, 4}, 2.f)));
}

TEST(BackendAccess, KeepsTuning) {
  const Backend backend = built(eager_backend_recipe());
  EXPECT_EQ(backend.tuning(), "");
  BackendAccess::set_tuning(backend, R"({"chosen":true})");
  EXPECT_EQ(backend.tuning(), R"({"chosen":true})");
  EXPECT_EQ(BackendAccess::loaded(BackendAccess::content(backend)).tuning(), R"({"chosen":true})");
  BackendContent empty;
  empty.recipe = eager_backend_recipe();
  expect_error(ErrorCode::kInternal, {"EagerBackend", "no model"}, [&] { BackendAccess::loaded(empty); });
}

}  // namespace
}  // namespace halftone
