// Lifecycle backends as .ht files: saved in any state, loaded, deployed; and files that lie about them.
#include <nlohmann/json.hpp>

#include "archive/broken_case.h"
#include "backend/lifecycle/backend_access.h"
#include "checkpoint/test_support.h"
#include "halftone/backend/backend.h"
#include "halftone/base/log.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

at::Tensor values(at::IntArrayRef sizes, int64_t seed) {
  const int64_t count = c10::multiply_integers(sizes);
  return (at::arange(count, at::kLong) * 37 + seed).remainder(64).sub(32).to(at::kFloat).div(16).view(sizes);
}

/// y = relu(x · wᵀ + b), wide enough for every scheme.
std::shared_ptr<GraphModule> wide_model() {
  auto module = module_from_text(
      R"(graph(%w: parameter "fc.weight" f32[16, 64], %b: parameter "fc.bias" f32[16], %x: user "x" f32[s0, 64]) {
  %y: f32[s0, 16] = aten::linear(%x, %w, %b) @ "fc" "torch.nn.modules.linear.Linear"
  %z: f32[s0, 16] = aten::relu(%y)
  return %z
})",
      {{"fc.weight", values({16, 64}, 1)}, {"fc.bias", values({16}, 2)}});
  module->ranges["s0"] = {1, 64};
  return module;
}

at::Tensor input() {
  return values({3, 64}, 5);
}

Backend built(std::shared_ptr<const BackendRecipe> recipe) {
  return Backend(std::move(recipe)).build(wide_model(), {}, {{{input()}, {}}});
}

at::Tensor result_of(const Backend& backend) {
  const c10::IValue result = backend.infer({input()});
  return result.isTuple() ? result.toTupleRef().elements().at(0).toTensor() : result.toTensor();
}

struct RecipeCase {
  std::string name;
  std::function<std::shared_ptr<const BackendRecipe>()> make;
  friend std::ostream& operator<<(std::ostream& out, const RecipeCase& recipe) { return out << recipe.name; }
};

class BackendCheckpoint : public CheckpointTest, public ::testing::WithParamInterface<RecipeCase> {
 protected:
  /// Saves, loads, and compares what comes back with the backend that gave `expected`.
  Backend round_trip(const Backend& backend, const SaveBackendOptions& options) {
    save(backend, path(), options);
    const CheckpointInfo info = verify_checkpoint(path());
    EXPECT_THAT(info.findings, IsEmpty());
    EXPECT_EQ(info.state, to_string(backend.state()));
    EXPECT_EQ(info.weights, options.original ? "original" : "converted");
    EXPECT_EQ(info.backend, backend.describe());
    Backend loaded = load(path());
    EXPECT_EQ(loaded.state(), BackendState::kCheckpointLoaded);
    EXPECT_EQ(loaded.name(), backend.name());
    EXPECT_EQ(loaded.config(), backend.config());
    EXPECT_EQ(loaded.key(), backend.key());
    EXPECT_EQ(loaded.device(), backend.device());
    EXPECT_EQ(loaded.tuning(), backend.tuning());
    return loaded;
  }
};

TEST_P(BackendCheckpoint, GivesTheSameNumbersAfterEveryWayThroughAFile) {
  Backend backend = built(GetParam().make());
  BackendAccess::set_tuning(backend, R"({"cpu":"a CPU","chosen":"this one"})");
  const at::Tensor expected = result_of(backend);
  for (const bool original : {false, true}) {
    for (const bool packed : {false, true}) {
      Backend deployed = round_trip(backend, {.packed = packed, .original = original});
      deployed.deploy();
      expect_same(result_of(deployed), expected, "deployed");
      Backend again = round_trip(deployed, {.packed = packed, .original = original});  // DEPLOYED
      Backend third = round_trip(again, {.original = original});                       // CHECKPOINT_LOADED
      third.activate();
      expect_same(result_of(third), expected, "activated");
    }
  }
  backend.deactivate();
  Backend from_inactive = round_trip(backend, {});
  from_inactive.deploy();
  expect_same(result_of(from_inactive), expected, "saved while inactive");
}

TEST_P(BackendCheckpoint, TheSameBackendGivesTheSameBytes) {
  save(built(GetParam().make()), path("a.ht"));
  save(built(GetParam().make()), path("b.ht"));
  EXPECT_EQ(file_text(path("a.ht")), file_text(path("b.ht")));
}

std::shared_ptr<const BackendRecipe> quant(const char* scheme) {
  return quant_backend_recipe({.quantization = scheme, .quantization_config = {}});
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, BackendCheckpoint,
    ::testing::Values(RecipeCase{"Eager", [] { return eager_backend_recipe(); }},
                      RecipeCase{"TorchScript", [] { return torch_script_backend_recipe(); }},
                      RecipeCase{"Halftone", [] { return halftone_backend_recipe(); }},
                      RecipeCase{"HalftoneBf16",
                                 [] {
                                   return halftone_backend_recipe(
                                       {.precision = HalftoneBackendConfig::Precision::kBFloat16});
                                 }},
                      RecipeCase{"Int8wo", [] { return quant("int8wo"); }},
                      RecipeCase{"Int8dq", [] { return quant("int8dq"); }},
                      RecipeCase{"Int4wo", [] { return quant("int4wo"); }},
                      RecipeCase{"Fp8wo", [] { return quant("fp8wo"); }}),
    [](const auto& info) { return info.param.name; });

class BackendFiles : public CheckpointTest {};

TEST_F(BackendFiles, NothingToSaveBeforeBuild) {
  const std::string message =
      message_of(ErrorCode::kState, [&] { save(Backend(quant_backend_recipe()), path()); });
  EXPECT_THAT(message, HasSubstr("QuantBackend"));
  EXPECT_THAT(message, HasSubstr("INIT"));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(BackendFiles, TheOriginalCanBeConvertedAnewTheConvertedCannot) {
  const Backend backend = built(quant("int8wo"));
  save(backend, path("original.ht"), {.original = true});
  save(backend, path("converted.ht"));
  EXPECT_LT(std::filesystem::file_size(path("converted.ht")),
            std::filesystem::file_size(path("original.ht")));
  expect_same(load(path("original.ht")).to_dict().module.at("fc.weight"), values({16, 64}, 1), "weight");
  const Backend loaded = load(path("converted.ht"));
  message_of(ErrorCode::kUnsupported, [&] { loaded.to_dict(); });
  EXPECT_THAT(message_of(ErrorCode::kUnsupported, [&] { save(loaded, path(), {.original = true}); }),
              HasSubstr("converted"));
}

TEST_F(BackendFiles, SamplesAreShapesUnlessTheirContentIsAskedFor) {
  Backend backend(eager_backend_recipe());
  const auto model = wide_model();
  model->sample_inputs = {values({2, 64}, 9)};
  backend.build(model, {}, {{{input()}, {}}, {{values({1, 64}, 7)}, {}}});
  save(backend, path("shapes.ht"));
  save(backend, path("data.ht"), {.sample_data = true});
  const CheckpointInfo shapes = verify_checkpoint(path("shapes.ht"));
  EXPECT_THAT(shapes.findings, IsEmpty());
  EXPECT_THAT(shapes.samples, ElementsAre("F32[3, 64]", "F32[1, 64]"));
  EXPECT_EQ(shapes.tensors, 2u) << "weight and bias";
  EXPECT_THAT(load_checkpoint(path("shapes.ht"))->sample_inputs, IsEmpty());

  const auto from_shapes = BackendAccess::content(load(path("shapes.ht"))).samples;
  ASSERT_EQ(from_shapes.size(), 2u);
  EXPECT_TRUE(from_shapes[1].args.at(0).toTensor().is_meta());
  EXPECT_EQ(from_shapes[1].args.at(0).toTensor().sizes(), at::IntArrayRef({1, 64}));
  EXPECT_THAT(message_of(ErrorCode::kUnsupported,
                         [&] { save(load(path("shapes.ht")), path(), {.sample_data = true}); }),
              HasSubstr("only their shapes"));

  EXPECT_EQ(verify_checkpoint(path("data.ht")).tensors, 5u);
  const auto from_data = BackendAccess::content(load(path("data.ht"))).samples;
  ASSERT_EQ(from_data.size(), 2u);
  expect_same(from_data[0].args.at(0).toTensor(), input(), "sample");
  EXPECT_EQ(load_checkpoint(path("data.ht"))->sample_inputs.size(), 1u);
}

TEST_F(BackendFiles, AGraphWithoutABackendBecomesOneAndTheLogSaysSo) {
  const auto model = wide_model();
  model->sample_inputs = {input()};
  save_checkpoint(*model, path());
  std::vector<std::string> messages;
  set_log_sink([&](LogLevel, std::string_view text) { messages.emplace_back(text); });
  Backend backend = load(path());
  set_log_sink({});
  EXPECT_THAT(messages, ElementsAre(HasSubstr("becomes a HalftoneBackend")));
  EXPECT_EQ(backend.name(), "HalftoneBackend");
  EXPECT_EQ(BackendAccess::content(backend).samples.size(), 1u);
  backend.deploy();
  EXPECT_TRUE(at::allclose(result_of(backend), run_sample(model)));
}

TEST_F(BackendFiles, LoadCheckpointTakesTheGraphOfABackend) {
  const Backend backend = built(quant("int8wo"));
  save(backend, path());
  const auto module = load_checkpoint(path());
  EXPECT_TRUE(at::allclose(Session(module).run({input()}).at(0).toTensor(), result_of(backend)));
}

struct Lie {
  std::string name;
  std::string key;
  std::string from;
  std::string to;
  std::string message;
  ErrorCode code = ErrorCode::kCorruptFile;
  friend std::ostream& operator<<(std::ostream& out, const Lie& lie) { return out << lie.name; }
};

class BackendLies : public CheckpointTest, public ::testing::WithParamInterface<Lie> {};

TEST_P(BackendLies, AreRefusedWithFileAndKey) {
  const Lie& lie = GetParam();
  Backend backend = built(quant("int8wo"));
  BackendAccess::set_tuning(backend, R"({"cpu":"a CPU"})");
  save(backend, path("good.ht"), {.sample_data = true});
  const HtFile good = HtFile::open(path("good.ht"), LoadMode::kRead);
  auto metadata = good.metadata().values();
  std::vector<SafetensorsTensor> tensors;
  for (const SafetensorsEntry& entry : good.tensors().entries()) {
    if (!is_filler(entry.name)) tensors.push_back({entry.name, entry.dtype, entry.shape, entry.bytes});
  }
  std::string& value = metadata.at("halftone." + lie.key);
  ASSERT_NE(value.find(lie.from), std::string::npos) << value;
  value.replace(value.find(lie.from), lie.from.size(), lie.to);
  write_ht(path(), tensors, metadata);
  testing::expect_refused({lie.name, "", lie.code, lie.message}, path(), [&] { load(path()); });
  EXPECT_THAT(message_of(lie.code, [&] { load(path()); }), HasSubstr("halftone." + lie.key));
  EXPECT_THAT(verify_checkpoint(path()).findings, Not(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(
    All, BackendLies,
    ::testing::Values(Lie{"TypeUnknown", "backend", "QuantBackend", "QuantBackent", "QuantBackend",
                          ErrorCode::kUnsupported},
                      Lie{"TypeIsCode", "backend",
                          R"("config":{"quantization_config":{"type":"Int8WeightOnlyConfig"}})",
                          R"("config":{"allow_code":true,"package":"x.pt2"})", "halftone.backend"},
                      Lie{"ConfigUnknown", "backend", "Int8WeightOnlyConfig", "Int9WeightOnlyConfig",
                          "Int9WeightOnlyConfig"},
                      Lie{"ConfigIsNoObject", "backend",
                          R"({"quantization_config":{"type":"Int8WeightOnlyConfig"}})", "[]",
                          "expected an object"},
                      Lie{"DeviceUnknown", "backend", R"("cpu")", R"("abacus")", "\"abacus\" is no device"},
                      Lie{"StateUnknown", "backend", "ACTIVE", "ASLEEP", "\"ASLEEP\" is not known"},
                      Lie{"WeightsUnknown", "backend", "converted", "pickled", "\"pickled\" is not known"},
                      Lie{"MemberUnknown", "backend", "\"device\"", "\"code\"", "no member \"code\""},
                      Lie{"TuningIsNoObject", "tuning", R"({"cpu":"a CPU"})", "7", "expected an object"},
                      Lie{"SampleOfUnknownKind", "samples", "tensor", "pickle", "pickle"}),
    [](const auto& info) { return info.param.name; });

TEST_F(BackendFiles, CodeInAnotherFileMayNotComeFromAFile) {
  save(built(eager_backend_recipe()), path("good.ht"));
  const HtFile good = HtFile::open(path("good.ht"), LoadMode::kRead);
  auto metadata = good.metadata().values();
  nlohmann::json record = nlohmann::json::parse(metadata.at("halftone.backend"));
  record["type"] = "AotInductorBackend";
  record["config"] = {{"allow_code", true}, {"package", path("evil.pt2")}};
  metadata["halftone.backend"] = record.dump();
  std::vector<SafetensorsTensor> tensors;
  for (const SafetensorsEntry& entry : good.tensors().entries()) {
    if (!is_filler(entry.name)) tensors.push_back({entry.name, entry.dtype, entry.shape, entry.bytes});
  }
  write_ht(path(), tensors, metadata);
  EXPECT_THAT(message_of(ErrorCode::kUnsupported, [&] { load(path()); }),
              HasSubstr("may not come from a file"));
  EXPECT_THAT(message_of(ErrorCode::kUnsupported, [&] { load_checkpoint(path()); }),
              HasSubstr("may not come from a file"));
  EXPECT_THAT(verify_checkpoint(path()).findings, ElementsAre(HasSubstr("may not come from a file")));
}

TEST_F(BackendFiles, AModuleIsNoBackend) {
  write_ht(path(), {},
           {{"halftone.kind", "module"},
            {"halftone.tensors", "[]"},
            {"halftone.quantized", "[]"},
            {"halftone.configs", "[]"}});
  EXPECT_THAT(message_of(ErrorCode::kUnsupported, [&] { load(path()); }), HasSubstr("load_module"));
}

}  // namespace
}  // namespace halftone
