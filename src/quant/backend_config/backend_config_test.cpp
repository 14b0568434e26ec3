#include "halftone/ptq/backend_config.h"

#include <gtest/gtest.h>

#include <string>

#include "base/expect_error.h"

namespace halftone {
namespace {

DTypeConfig weighted() {
  DTypeConfig config;
  config.input.dtype = config.output.dtype = ConfigDType::kQUInt8;
  config.weight.dtype = ConfigDType::kQInt8;
  config.bias = ConfigDType::kFloat32;
  return config;
}

/// The example of torch.ao's documentation.
BackendConfig my_backend() {
  return BackendConfig("my_backend")
      .set_backend_pattern_config(
          BackendPatternConfig("torch.nn.Linear")
              .add_dtype_config(weighted())
              .set_root_module("torch.nn.Linear")
              .set_qat_module("torch.ao.nn.qat.Linear")
              .set_reference_quantized_module("torch.ao.nn.quantized.reference.Linear"))
      .set_backend_pattern_config(
          BackendPatternConfig(Pattern::sequence({"torch.nn.Conv2d", "torch.nn.ReLU"}))
              .add_dtype_config(weighted())
              .set_fused_module("torch.ao.nn.intrinsic.ConvReLU2d")
              .set_fuser_method("sequential(torch.ao.nn.intrinsic.ConvReLU2d)"));
}

std::string refusal_of(const std::string& json) {
  return message_of(ErrorCode::kCorruptFile, [&] { BackendConfig::from_dict(json, "my.json"); });
}

TEST(BackendConfig, SettersChainAndOverride) {
  BackendConfig config = my_backend();
  EXPECT_EQ(config.name(), "my_backend");
  ASSERT_EQ(config.configs().size(), 2u);
  config.set_name("other").set_backend_pattern_config(
      BackendPatternConfig("torch.nn.Linear")
          .set_observation_type(ObservationType::kOutputSharesInputObserver));
  ASSERT_EQ(config.configs().size(), 2u);
  EXPECT_EQ(config.configs()[0].observation_type(), ObservationType::kOutputSharesInputObserver);
  EXPECT_TRUE(config.configs()[0].dtype_configs().empty()) << "the old config's parts stayed";
  config.set_backend_pattern_configs({BackendPatternConfig("torch.cat"), BackendPatternConfig("torch.add")});
  EXPECT_EQ(config.configs().size(), 4u);
}

TEST(BackendConfig, ConfigsIsACopy) {
  const BackendConfig config = my_backend();
  std::vector<BackendPatternConfig> copy = config.configs();
  copy[0].set_root_module("torch.nn.Conv1d");
  copy.clear();
  EXPECT_EQ(config, my_backend());
}

TEST(BackendConfig, DictThereAndBack) {
  const BackendConfig config = my_backend();
  const BackendConfig back = BackendConfig::from_dict(config.to_dict());
  EXPECT_EQ(back, config);
  EXPECT_EQ(back.to_dict(), config.to_dict());
  for (const std::string& name : builtin_backend_configs()) {
    const BackendConfig builtin = builtin_backend_config(name);
    EXPECT_EQ(BackendConfig::from_dict(builtin.to_dict()), builtin) << name;
  }
}

TEST(BackendConfig, BuiltinsCoverWhatIsAskedFor) {
  const char* wanted[] = {"torch.nn.Linear",
                          "torch.nn.Conv1d",
                          "torch.nn.Conv2d",
                          "torch.nn.Conv3d",
                          "torch.nn.ConvTranspose2d",
                          "torch.nn.BatchNorm2d",
                          "torch.nn.ReLU",
                          "torch.nn.functional.relu6",
                          "torch.add",
                          "torch.mul",
                          "torch.cat",
                          "torch.nn.MaxPool2d",
                          "torch.nn.functional.interpolate",
                          "torch.nn.Embedding",
                          "torch.nn.LayerNorm",
                          "torch.nn.Softmax",
                          "torch.matmul",
                          "Tensor.reshape"};
  const char* fusions[] = {
      R"(["torch.nn.ReLU", ["torch.add", ["torch.nn.BatchNorm2d", "torch.nn.Conv2d"], "*"]])",
      R"(["torch.add", "*", "torch.nn.Linear"])", R"(["torch.nn.BatchNorm1d", "torch.nn.Linear"])"};
  for (const std::string& name : builtin_backend_configs()) {
    const BackendConfig config = builtin_backend_config(name);
    for (const char* pattern : wanted) {
      const BackendPatternConfig* found = config.find(pattern);
      ASSERT_NE(found, nullptr) << name << ": " << pattern;
      EXPECT_FALSE(found->dtype_configs().empty()) << name << ": " << pattern;
    }
    for (const char* pattern : fusions)
      EXPECT_NE(config.find(Pattern::from_complex_json(pattern)), nullptr) << name << ": " << pattern;
  }
  EXPECT_NE(message_of(ErrorCode::kInvalidArgument, [] { builtin_backend_config("x68"); }).find("x86"),
            std::string::npos);
}

TEST(BackendConfig, NameAndConfigsMayBeMissingAsInTorch) {
  EXPECT_EQ(BackendConfig::from_dict(R"({"configs": [{"pattern": "torch.cat"}]})").name(), "");
  EXPECT_EQ(BackendConfig::from_dict(R"({"configs": [{"pattern": "torch.cat"}]})").configs().size(), 1u);
  EXPECT_EQ(BackendConfig::from_dict(R"({"name": "a"})"), BackendConfig("a"));
  EXPECT_EQ(BackendConfig::from_dict("{}"), BackendConfig());
}

TEST(Pattern, OneMeaningTwoForms) {
  const Pattern chain = Pattern::sequence({"torch.nn.Conv2d", "torch.nn.BatchNorm2d", "torch.nn.ReLU"});
  const Pattern nested =
      Pattern::from_complex_json(R"(["torch.nn.ReLU", ["torch.nn.BatchNorm2d", "torch.nn.Conv2d"]])");
  EXPECT_EQ(chain, nested);
  EXPECT_FALSE(nested.is_complex());
  EXPECT_EQ(nested.to_json(), R"(["torch.nn.Conv2d","torch.nn.BatchNorm2d","torch.nn.ReLU"])");
  EXPECT_EQ(chain.to_text(), "torch.nn.ReLU(torch.nn.BatchNorm2d(torch.nn.Conv2d))");
}

TEST(Pattern, SharedResultsAreNodesOnce) {
  const Pattern pattern = Pattern::from_complex_json(
      R"(["torch.mul", {"op": "torch.nn.Linear", "id": "x"}, ["torch.sigmoid", {"ref": "x"}]])");
  ASSERT_EQ(pattern.nodes().size(), 3u);
  EXPECT_EQ(pattern.nodes()[2].inputs, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(pattern.nodes()[1].inputs, (std::vector<size_t>{0}));
  EXPECT_EQ(Pattern::from_complex_json(pattern.to_complex_json()), pattern);
  // The same without sharing is another pattern: two linears.
  EXPECT_FALSE(pattern == Pattern::from_complex_json(
                              R"(["torch.mul", "torch.nn.Linear", ["torch.sigmoid", "torch.nn.Linear"]])"));
}

TEST(Pattern, BadOnesSayWhere) {
  const auto refused = [](const std::string& json) {
    return message_of(ErrorCode::kCorruptFile, [&] { Pattern::from_complex_json(json); });
  };
  EXPECT_NE(
      refused(R"({"op": "torch.add", "id": "a", "inputs": [["torch.relu", {"ref": "a"}]]})").find("cyclic"),
      std::string::npos);
  EXPECT_NE(refused(R"(["torch.add", {"ref": "b"}])").find("no operation before this one has the id \"b\""),
            std::string::npos);
  EXPECT_NE(refused(R"(["torch.nn.Relu", "torch.nn.Conv2d"])").find("pattern[0]"), std::string::npos);
  EXPECT_NE(refused(R"(["torch.nn.Relu", "torch.nn.Conv2d"])").find("torch.nn.ReLU"), std::string::npos);
  EXPECT_NE(refused(R"(["*", "torch.nn.Conv2d"])").find("cannot be anything"), std::string::npos);
  EXPECT_NE(refused("[]").find("empty"), std::string::npos);
  EXPECT_NE(refused("7").find("expected a name"), std::string::npos);
  EXPECT_NE(
      refused(R"(["torch.add", {"op": "torch.mul", "id": "x"}, {"op": "torch.mul", "id": "x"}])").find("two"),
      std::string::npos);
  EXPECT_NE(
      message_of(ErrorCode::kInvalidArgument, [] { Pattern("torch.nn.Linaer"); }).find("torch.nn.Linear"),
      std::string::npos);
}

TEST(BackendConfig, ErrorsHaveThePathToTheKey) {
  const std::string start = R"({"name": "a", "configs": [{"pattern": "torch.cat"}, )";
  const auto in_second = [&](const std::string& members) {
    return refusal_of(start + R"({"pattern": "torch.nn.Linear", )" + members + "}]}");
  };
  EXPECT_NE(in_second(R"("observation": 1)").find("my.json.configs[1]: unknown key \"observation\""),
            std::string::npos);
  EXPECT_NE(in_second(R"("observation_type": "OUTPUT_SHARE_OBSERVER_WITH_INPUTS")")
                .find("my.json.configs[1].observation_type: "),
            std::string::npos);
  EXPECT_NE(in_second(R"("dtype_configs": [{"input_dtype": "quint9"}])")
                .find("my.json.configs[1].dtype_configs[0].input_dtype: there is no dtype \"quint9\""),
            std::string::npos);
  EXPECT_NE(in_second(R"("dtype_configs": [{"is_dynamic": 1}])").find("is_dynamic: expected a boolean"),
            std::string::npos);
  EXPECT_NE(in_second(R"("dtype_configs": [{"input_dtype": {"dtype": "quint8", "scale_exact_match": "x"}}])")
                .find("scale_exact_match: expected a number"),
            std::string::npos);
  EXPECT_NE(in_second(R"("dtype_configs": {})").find("dtype_configs: expected an array"), std::string::npos);
  EXPECT_NE(in_second(R"("root_module": "torch.nn.Lineal")").find("root_module: there is no module type"),
            std::string::npos);
  EXPECT_NE(in_second(R"("fuser_method": "torch.nn.Linear")").find("there is no fuser method"),
            std::string::npos);
  EXPECT_NE(in_second(R"("num_tensor_args_to_observation_type": {"one": "INPUT_OUTPUT_NOT_OBSERVED"})")
                .find("no number of tensors"),
            std::string::npos);
  EXPECT_NE(in_second(R"("input_type_to_index": {"weights": 1})").find("not \"weights\""), std::string::npos);
  EXPECT_NE(in_second(R"("pattern_complex_format": "torch.cat")").find("needs one of"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"name": "a", "configs": {}})").find("expected an array"), std::string::npos);
}

TEST(DTypeConfig, ConstraintsStayInOrder) {
  const std::string json =
      R"({"input_dtype":{"dtype":"quint8","quant_min_lower_bound":0,"quant_max_upper_bound":127},"is_dynamic":true})";
  const DTypeConfig config = DTypeConfig::from_dict(json);
  EXPECT_EQ(config.input.quant_max_upper_bound, 127);
  EXPECT_EQ(config.is_dynamic, true);
  EXPECT_EQ(config.to_dict(), json);
  EXPECT_NE(
      message_of(
          ErrorCode::kCorruptFile,
          [] {
            DTypeConfig::from_dict(
                R"({"weight_dtype":{"dtype":"qint8","quant_min_lower_bound":9,"quant_max_upper_bound":1}})");
          })
          .find("leave nothing"),
      std::string::npos);
  EXPECT_EQ(config_dtype_by_name("torch.qint8"), ConfigDType::kQInt8);
  EXPECT_FALSE(config_dtype_by_name("int7"));
}

TEST(BackendConfigNames, UsersBringTheirOwn) {
  EXPECT_NE(
      message_of(ErrorCode::kInvalidArgument, [] { BackendPatternConfig("my.Layer"); }).find("my.Layer"),
      std::string::npos);
  register_backend_config_name(ConfigNameKind::kModule, "my.Layer");
  register_backend_config_name(ConfigNameKind::kModule, "my.Layer");
  register_backend_config_name(ConfigNameKind::kRootNodeGetter, "my.getter");
  const BackendPatternConfig config = BackendPatternConfig("my.Layer").set_root_node_getter("my.getter");
  EXPECT_EQ(BackendPatternConfig::from_dict(config.to_dict()), config);
  EXPECT_NE(message_of(ErrorCode::kInvalidArgument,
                       [] { register_backend_config_name(ConfigNameKind::kFunction, "my.Layer"); })
                .find("module type already"),
            std::string::npos);
  EXPECT_EQ(BackendPatternConfig("aten::linear").pattern().nodes()[0].op, "aten::linear");
}

}  // namespace
}  // namespace halftone
