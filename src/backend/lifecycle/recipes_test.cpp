// The recipes: their configs, names and keys, and the registry.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "backend/lifecycle/test_support.h"

namespace halftone {
namespace {

QuantBackendConfig quant(std::optional<std::string> name, std::optional<QuantConfig> config = std::nullopt) {
  return {std::move(name), std::move(config)};
}

// As TorchAOBackendConfig.__post_init__ of AITune.
TEST(QuantBackendConfig, TakesExactlyOneOfTheTwo) {
  expect_error(ErrorCode::kInvalidArgument,
               {"Only one of quantization or quantization_config should be provided"},
               [] { quant_backend_recipe(quant("int8wo", Int8WeightOnlyConfig{})); });
  expect_error(ErrorCode::kInvalidArgument, {"Either quantization or quantization_config should be provided"},
               [] { quant_backend_recipe(QuantBackendConfig{}); });
  expect_error(ErrorCode::kInvalidArgument, {"Only one of"}, [] {
    Backend("QuantBackend",
            R"({"quantization":"int8wo","quantization_config":{"type":"Int8WeightOnlyConfig"}})");
  });
  expect_error(ErrorCode::kInvalidArgument, {"int9wo"}, [] { quant_backend_recipe(quant("int9wo")); });
}

// As AITune: "self._config = config or TorchAOBackendConfig(quantization=DEFAULT_QUANTIZATION)".
TEST(QuantBackendConfig, NoneAtAllIsFp8wo) {
  const std::string expected = Backend(quant_backend_recipe(quant("fp8wo"))).config();
  EXPECT_EQ(Backend(quant_backend_recipe()).config(), expected);
  EXPECT_EQ(Backend("QuantBackend").config(), expected);
  EXPECT_NE(expected.find("Float8WeightOnlyConfig"), std::string::npos);
}

TEST(QuantBackendConfig, TakesEverySchemeAndCustomConfigs) {
  for (const char* scheme : {"int8wo", "int8dq", "int4wo", "fp8wo", "fp8dq"})
    EXPECT_EQ(Backend(quant_backend_recipe(quant(scheme))).describe(),
              fmt::format("QuantBackend(quantization_config={})", QuantConfig(scheme).describe()));
  const Backend custom(quant_backend_recipe(quant({}, IntxWeightOnlyConfig{.bits = 3})));
  EXPECT_EQ(custom.describe(), "QuantBackend(quantization_config=IntxWeightOnlyConfig(bits=3))");
}

TEST(BackendKey, IsTheTypeAndAHashOfTheConfig) {
  const Backend by_name(quant_backend_recipe(quant("int4wo")));
  const Backend by_config(quant_backend_recipe(quant({}, Int4WeightOnlyConfig{})));
  const Backend by_json("QuantBackend",
                        R"({"quantization_config": {"group_size": 32, "type": "Int4WeightOnlyConfig"}})");
  EXPECT_EQ(by_name.key(), by_config.key());
  EXPECT_EQ(by_name.key(), by_json.key());
  EXPECT_TRUE(
      testing::Matcher<std::string>(testing::MatchesRegex("QuantBackend_[0-9a-f]+")).Matches(by_name.key()));
  EXPECT_EQ(by_name.key().size(), std::string("QuantBackend_").size() + 16);
  std::set<std::string> keys{
      by_name.key(),
      Backend("EagerBackend").key(),
      Backend("TorchScriptBackend").key(),
      Backend("HalftoneBackend").key(),
      Backend("HalftoneBackend", R"({"threads":1})").key(),
      Backend(quant_backend_recipe(quant({}, Int4WeightOnlyConfig{.group_size = 64}))).key()};
  EXPECT_EQ(keys.size(), 6u);
}

TEST(BackendDescribe, GivesChangedFieldsOnly) {
  EXPECT_EQ(Backend("EagerBackend").describe(), "EagerBackend()");
  EXPECT_EQ(Backend("HalftoneBackend").describe(), "HalftoneBackend()");
  EXPECT_EQ(Backend("HalftoneBackend", R"({"precision":"bfloat16","threads":2})").describe(),
            "HalftoneBackend(precision=bfloat16, threads=2)");
  EXPECT_EQ(Backend(quant_backend_recipe(quant({}, Int4WeightOnlyConfig{.group_size = 64}))).describe(),
            "QuantBackend(quantization_config=Int4WeightOnlyConfig(group_size=64))");
}

TEST(BackendConfigs, AreCanonicalAndReadBack) {
  for (const RecipeCase& recipe : plain_recipes()) {
    const Backend backend(recipe.make());
    EXPECT_EQ(backend.config().find(' '), std::string::npos) << backend.config();
    EXPECT_EQ(Backend(backend.name(), backend.config()).config(), backend.config());
  }
  EXPECT_EQ(Backend("HalftoneBackend").config(), R"({"precision":"float32","threads":0})");
}

TEST(BackendConfigs, RefuseFieldsAndValuesThatTheyDoNotKnow) {
  const auto refused = [](const char* type, const char* json, std::initializer_list<std::string> parts) {
    expect_error(ErrorCode::kInvalidArgument, parts, [&] { Backend(type, json); });
  };
  refused("EagerBackend", R"({"threads":1})", {"EagerBackend", "threads"});
  refused("HalftoneBackend", R"({"thread":1})",
          {"HalftoneBackend", "\"thread\"", "did you mean \"threads\""});
  refused("HalftoneBackend", R"({"threads":-1})", {"threads", "-1"});
  refused("HalftoneBackend", R"({"threads":1e9})", {"threads"});
  refused("HalftoneBackend", R"({"precision":"float8"})", {"precision", "float8"});
  refused("HalftoneBackend", "[]", {"JSON object"});
  refused("HalftoneBackend", "{", {"HalftoneBackend"});
  refused("QuantBackend", R"({"quantization":8})", {"quantization"});
  refused("AotInductorBackend", "{}", {"package"});
  refused("AotInductorBackend", R"({"package":"m.pt2"})", {"m.pt2", "machine code", "allow_code"});
  refused("AotInductorBackend", R"({"package":"m.pt2","allow_code":"yes"})", {"allow_code"});
}

TEST(BackendConfigs, AreWrittenAsReadableFiles) {
  const std::string path = testing::TempDir() + "config.json";
  const Backend backend(quant_backend_recipe(quant("int4wo")));
  backend.config_to_json(path);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("\n  \"quantization_config\": {\n"), std::string::npos) << text;
  EXPECT_EQ(Backend("QuantBackend", text).config(), backend.config());
  expect_error(ErrorCode::kIo, {"/nowhere/config.json"},
               [&] { backend.config_to_json("/nowhere/config.json"); });
}

TEST(BackendTypes, AreFoundByName) {
  std::vector<std::string> names;
  for (const BackendType& type : backend_types()) {
    names.push_back(type.type);
    EXPECT_FALSE(type.what.empty());
  }
  for (const char* name :
       {"AotInductorBackend", "EagerBackend", "HalftoneBackend", "QuantBackend", "TorchScriptBackend"})
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  expect_error(ErrorCode::kNotFound, {"QuantBacken", "did you mean \"QuantBackend\""},
               [] { Backend("QuantBacken"); });
  expect_error(ErrorCode::kInvalidArgument, {"kind"},
               [] { Backend(std::shared_ptr<const BackendRecipe>()); });
}

TEST(BackendTypes, TakeTheUsersOwnOnce) {
  const auto make = [](std::string_view) { return eager_backend_recipe(); };
  register_backend_type({"MineBackend", "for a test", make});
  EXPECT_EQ(make_backend_recipe("MineBackend")->type(), "EagerBackend");
  expect_error(ErrorCode::kInvalidArgument, {"MineBackend", "already"}, [&] {
    register_backend_type({"MineBackend", "again", make});
  });
  expect_error(ErrorCode::kInvalidArgument, {"name"}, [&] { register_backend_type({"", "no name", make}); });
  expect_error(ErrorCode::kInvalidArgument, {"EmptyBackend"}, [&] {
    register_backend_type({"EmptyBackend", "no function", {}});
  });
}

class AotInductor : public testing::Test {
 protected:
  void SetUp() override {
    if (!aoti_refusal().empty()) GTEST_SKIP() << aoti_refusal();
  }
};

TEST_F(AotInductor, RefusesToBeSaved) {
  const Backend backend = built(aot_inductor_case().make());
  expect_error(ErrorCode::kUnsupported, {"AotInductorBackend", "cannot be saved", "code"},
               [&] { backend.to_dict(); });
  BackendDict dict = built(eager_backend_recipe()).to_dict();
  dict.type = backend.name();
  dict.config = backend.config();
  expect_error(ErrorCode::kUnsupported, {"AotInductorBackend", "code"},
               [&] { Backend::from_dict(small_model(), dict, backend.name()); });
}

TEST_F(AotInductor, RefusesModelsWithStateAndOtherModels) {
  const auto recipe = aot_inductor_case().make();
  expect_error(ErrorCode::kUnsupported, {"AotInductorBackend", "writes"},
               [&] { Backend(recipe).build(running_sum(), {}, {}); });
  const auto two_results = module_from_text(R"(
graph(%x: user "x" f32[s0, 64]) {
  %y: f32[s0, 64] = aten::relu(%x)
  return %y, %x
})");
  const Backend backend = Backend(recipe).build(two_results, {}, {});
  expect_error(ErrorCode::kInvalidArgument, {"small_model.pt2", "another model"},
               [&] { backend.infer({test_input()}); });
}

TEST(AotInductorPackages, ThatAreNoneAreRefused) {
  const std::string path = testing::TempDir() + "no_package.pt2";
  std::ofstream(path) << "not a package";
  for (const std::string& package : {path, std::string("/nowhere/model.pt2")}) {
    Backend backend(aot_inductor_backend_recipe({.package = package, .allow_code = true}));
    expect_error(ErrorCode::kInvalidArgument, {"AotInductorBackend", package},
                 [&] { backend.build(small_model(), {}, {}); });
    EXPECT_EQ(backend.state(), BackendState::kInit);
  }
}

}  // namespace
}  // namespace halftone
