// Which patterns are found in graphs: text in, patterns out.
#include "quant/ptq/check_config.h"
#include "quant/ptq/test_models.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DTypeConfig int8_dtype() {
  DTypeConfig dtype;
  dtype.input.dtype = dtype.output.dtype = ConfigDType::kQUInt8;
  dtype.weight.dtype = ConfigDType::kQInt8;
  return dtype;
}

BackendConfig config_with(const std::vector<Pattern>& patterns) {
  BackendConfig config("test");
  for (const Pattern& pattern : patterns)
    config.set_backend_pattern_config(BackendPatternConfig(pattern).add_dtype_config(int8_dtype()));
  return config;
}

std::vector<std::string> matches_in(const GraphModule& module, const BackendConfig& config,
                                    const QConfigMapping& mapping = plain_mapping()) {
  std::vector<c10::IValue> example;
  for (const GraphInput& input : module.graph().inputs()) {
    if (input.kind != InputKind::kUser) continue;
    std::vector<int64_t> sizes;
    for (const SymExpr& size : input.value->meta()->sizes) sizes.push_back(size.constant());
    example.emplace_back(at::ones(sizes, input.value->meta()->dtype));
  }
  return pattern_lines(prepare(module, mapping, example, config).patterns());
}

/// `body` with x in f32[2, 4], and a weight of a linear in f32[4, 4].
std::shared_ptr<GraphModule> small_graph(const std::string& body) {
  at::manual_seed(2);
  return module_from_text(
      "graph(%w: parameter \"fc.weight\" f32[4, 4], %x: user \"x\" f32[2, 4]) {" + body + "}",
      {{"fc.weight", at::randn({4, 4})}});
}

constexpr const char* kLinear = R"( @ "fc" "torch.nn.modules.linear.Linear"
)";

TEST(PtqMatch, LongestPatternsFirstAndNormsAreFolded) {
  EXPECT_THAT(matches_in(*residual_model(), builtin_backend_config("native")),
              ElementsAre("torch.ao.nn.intrinsic.ConvReLU2d @ conv1",
                          "torch.nn.functional.relu(torch.add(torch.nn.Conv2d, *)) @ conv2"));
}

TEST(PtqMatch, WildcardsMayStandOnEitherSide) {
  const auto model = small_graph(R"(%a: f32[2, 4] = aten::linear(%x, %w))" + std::string(kLinear) +
                                 R"(%s: f32[2, 4] = aten::add.Tensor(%x, %a)
                                    return %s)");
  EXPECT_THAT(
      matches_in(*model,
                 config_with({Pattern::from_complex_json(R"(["torch.add", "*", "torch.nn.Linear"])")})),
      ElementsAre("torch.add(*, torch.nn.Linear) @ fc"));
  expect_error(ErrorCode::kInvalidArgument, {"no pattern", "\"test\""}, [&] {
    matches_in(*model, config_with({Pattern::from_complex_json(R"(["torch.add", "torch.nn.Linear", "*"])")}));
  });
}

TEST(PtqMatch, InnerResultsMustHaveOneReader) {
  const auto model = small_graph(R"(%a: f32[2, 4] = aten::linear(%x, %w))" + std::string(kLinear) +
                                 R"(%r: f32[2, 4] = aten::relu(%a)
                                    %s: f32[2, 4] = aten::add.Tensor(%a, %r)
                                    return %s)");
  const BackendConfig config = config_with(
      {Pattern::sequence({"torch.nn.Linear", "torch.nn.functional.relu"}), "torch.nn.Linear", "torch.relu"});
  EXPECT_THAT(matches_in(*model, config), ElementsAre("torch.nn.Linear @ fc", "torch.relu @ "));
}

TEST(PtqMatch, AResultThatThePatternUsesTwice) {
  const auto model = small_graph(R"(%a: f32[2, 4] = aten::linear(%x, %w))" + std::string(kLinear) +
                                 R"(%g: f32[2, 4] = aten::sigmoid(%a)
                                    %s: f32[2, 4] = aten::mul.Tensor(%a, %g)
                                    return %s)");
  const Pattern silu = Pattern::from_complex_json(
      R"(["torch.mul", {"op": "torch.nn.Linear", "id": "y"}, ["torch.sigmoid", {"ref": "y"}]])");
  EXPECT_EQ(matches_in(*model, config_with({silu})).size(), 1U);
}

TEST(PtqMatch, AModuleIsNoFunction) {
  const auto model = small_graph(R"(%a: f32[2, 4] = aten::relu(%x)  @ "act" "torch::nn::ReLUImpl"
                                    %b: f32[2, 4] = aten::relu(%a)  @ "block" "Block"
                                    return %b)");
  EXPECT_THAT(matches_in(*model, config_with({"torch.nn.functional.relu"})),
              ElementsAre("torch.nn.functional.relu @ block"));
  EXPECT_THAT(matches_in(*model, config_with({"torch.nn.ReLU"})), ElementsAre("torch.nn.ReLU @ act"));
  EXPECT_THAT(matches_in(*model, config_with({"aten::relu"})),
              ElementsAre("aten::relu @ act", "aten::relu @ block"));
}

TEST(PtqMatch, ALinearThatIsReturnedTooIsNotFusedAway) {
  const auto model = small_graph(R"(%a: f32[2, 4] = aten::linear(%x, %w))" + std::string(kLinear) +
                                 R"(%r: f32[2, 4] = aten::relu(%a)
                                    return %a, %r)");
  EXPECT_THAT(matches_in(*model, builtin_backend_config("native")),
              ElementsAre("torch.nn.Linear @ fc", "torch.nn.functional.relu @ "));
}

TEST(PtqMatch, QconfigsByNameTypeAndOrder) {
  const auto model = small_graph(R"(%a: f32[2, 4] = aten::relu(%x)  @ "block" "Block"
                                    %b: f32[2, 4] = aten::relu(%a)  @ "block" "Block"
                                    %c: f32[2, 4] = aten::linear(%b, %w)  @ "block.fc" "torch.nn.modules.linear.Linear"
                                    return %c)");
  const BackendConfig config = config_with({"torch.relu", "torch.nn.Linear"});
  const QConfig usual = *plain_mapping().find("", {}, 0);
  const auto with = [&](auto change) {
    QConfigMapping mapping = plain_mapping();
    change(mapping);
    return matches_in(*model, config, mapping);
  };
  EXPECT_THAT(with([](QConfigMapping& m) { m.set_object_type("torch.relu", std::nullopt); }),
              ElementsAre("!torch.relu @ block", "!torch.relu @ block", "torch.nn.Linear @ block.fc"));
  EXPECT_THAT(with([](QConfigMapping& m) {
                m.set_module_name_object_type_order("block", "torch.relu", 1, std::nullopt);
              }),
              ElementsAre("torch.relu @ block", "!torch.relu @ block", "torch.nn.Linear @ block.fc"));
  EXPECT_THAT(with([&](QConfigMapping& m) {
                m.set_module_name("block", std::nullopt).set_module_name("block.fc", usual);
              }),
              ElementsAre("!torch.relu @ block", "!torch.relu @ block", "torch.nn.Linear @ block.fc"));
  EXPECT_THAT(with([](QConfigMapping& m) { m.set_module_name_regex("block\\.f", std::nullopt); }),
              ElementsAre("torch.relu @ block", "torch.relu @ block", "!torch.nn.Linear @ block.fc"));
  EXPECT_THAT(with([](QConfigMapping& m) {
                m.set_module_name_object_type_order("block", "torch.nn.Linear", 0, std::nullopt);
              }),
              ElementsAre("torch.relu @ block", "torch.relu @ block", "!torch.nn.Linear @ block.fc"));
}

TEST(PtqMatch, BoundsOfTheBackendAreKept) {
  DTypeConfig narrow = int8_dtype();
  narrow.input.quant_min_lower_bound = 0;
  narrow.input.quant_max_upper_bound = 127;
  BackendConfig config("narrow");
  config.set_backend_pattern_config(BackendPatternConfig("torch.nn.Linear").add_dtype_config(narrow));
  const std::vector<c10::IValue> example = {at::ones({1, 3})};
  expect_error(ErrorCode::kInvalidArgument, {"torch.nn.Linear", "\"fc\"", "[0, 255]", "[0, 127]"},
               [&] { prepare(*linear_model(), plain_mapping(), example, config); });
  QConfig reduced = *plain_mapping().find("", {}, 0);
  reduced.activation.reduce_range = true;
  QConfigMapping mapping;
  EXPECT_TRUE(prepare(*linear_model(), mapping.set_global(reduced), example, config).patterns()[0].quantized);
}

TEST(PtqMatch, FixedResultsNeedAFixedObserver) {
  const auto model = small_graph(R"(%a: f32[2, 4] = aten::sigmoid(%x)
                                    return %a)");
  expect_error(ErrorCode::kInvalidArgument, {"torch.sigmoid", "FixedQParamsObserver"},
               [&] { matches_in(*model, builtin_backend_config("native")); });
  EXPECT_THAT(matches_in(*model, builtin_backend_config("native"), default_qconfig_mapping("x86")),
              ElementsAre("torch.sigmoid @ "));
}

TEST(PtqMatch, WhatIsWrittenInPlaceAndReadElsewhereStaysFloat) {
  const auto model = small_graph(R"(%a: f32[2, 4] = aten::linear(%x, %w))" + std::string(kLinear) +
                                 R"(%r: f32[2, 4] = aten::relu_(%a)
                                    %b: f32[2, 4] = aten::linear(%x, %w)  @ "fc2" "torch.nn.modules.linear.Linear"
                                    %s: f32[2, 4] = aten::add.Tensor(%a, %b)
                                    return %s)");
  EXPECT_THAT(matches_in(*model, config_with({"torch.nn.Linear", "torch.add"})),
              ElementsAre("!torch.nn.Linear @ fc", "torch.nn.Linear @ fc2", "!torch.add @ "));
}

TEST(PtqMatch, RecurrentLayersStayFloatAndSaySo) {
  at::manual_seed(3);
  const auto model = module_from_text(
      R"(graph(%i: parameter "cell.weight_ih" f32[4, 4], %h: parameter "cell.weight_hh" f32[4, 4],
               %w: parameter "fc.weight" f32[4, 4], %x: user "x" f32[2, 4]) {
           %a: f32[2, 4] = aten::linear(%x, %w)  @ "fc" "torch.nn.modules.linear.Linear"
           %b: f32[2, 4] = aten::rnn_tanh_cell(%a, %x, %i, %h)  @ "cell" "torch.nn.modules.rnn.RNNCell"
           return %b
         })",
      {{"cell.weight_ih", at::randn({4, 4})},
       {"cell.weight_hh", at::randn({4, 4})},
       {"fc.weight", at::ones({4, 4})}});
  QConfigMapping mapping;
  const PreparedModel prepared =
      prepare(*model, mapping.set_global(qconfig_by_name("default_dynamic")), {at::ones({2, 4})});
  EXPECT_THAT(pattern_lines(prepared.patterns()),
              ElementsAre("torch.nn.Linear @ fc", "!torch.nn.RNNCell @ cell"));
  EXPECT_THAT(prepared.patterns()[1].reason, HasSubstr("not quantized here"));
}

TEST(PtqMatch, RefusesWhatItCannotMean) {
  const std::vector<c10::IValue> example = {at::ones({1, 3})};
  const auto prepare_with = [&](const BackendConfig& config, const QConfigMapping& mapping) {
    return [=] { prepare(*linear_model(), mapping, example, config); };
  };
  expect_error(ErrorCode::kInvalidArgument,
               {"test model", "configs[0].pattern", "aten::lineer", "aten::linear"},
               prepare_with(config_with({"aten::lineer"}), plain_mapping()));
  expect_error(ErrorCode::kInvalidArgument, {"no pattern", "which has 1 operation"},
               prepare_with(config_with({"torch.nn.Conv2d"}), plain_mapping()));
  QConfig signed_activations = *plain_mapping().find("", {}, 0);
  signed_activations.activation.dtype = ConfigDType::kQInt8;
  QConfigMapping mapping;
  expect_error(ErrorCode::kInvalidArgument, {"torch.nn.Linear", "activations of qint8"},
               prepare_with(builtin_backend_config("native"), mapping.set_global(signed_activations)));
  expect_error(ErrorCode::kInvalidArgument, {"weights of quint8"},
               prepare_with(builtin_backend_config("native"),
                            mapping.set_global(qconfig_by_name("default_quint8_weight"))));
  expect_error(ErrorCode::kInvalidArgument, {"its qconfig says so"},
               prepare_with(builtin_backend_config("native"), QConfigMapping()));
  BackendConfig named("named");
  register_backend_config_name(ConfigNameKind::kFuserMethod, "my.fuser");
  named.set_backend_pattern_config(
      BackendPatternConfig(Pattern::sequence({"torch.nn.Linear", "torch.nn.ReLU"}))
          .set_fuser_method("my.fuser"));
  expect_error(ErrorCode::kUnsupported, {"my.fuser"}, prepare_with(named, plain_mapping()));
}

TEST(PtqMatch, RefusesWhatItWouldIgnore) {
  register_backend_config_name(ConfigNameKind::kRootNodeGetter, "my.root");
  register_backend_config_name(ConfigNameKind::kExtraInputsGetter, "my.inputs");
  register_backend_config_name(ConfigNameKind::kModule, "my.Reference");
  const std::vector<c10::IValue> example = {at::ones({1, 3})};
  const auto refused = [&](BackendPatternConfig config, std::initializer_list<std::string> words) {
    BackendConfig backend("mine");
    backend.set_backend_pattern_config(std::move(config));
    expect_error(ErrorCode::kUnsupported, words,
                 [&] { prepare(*linear_model(), plain_mapping(), example, backend); });
  };
  const BackendPatternConfig linear("torch.nn.Linear"), functional("torch.nn.functional.linear");
  refused(BackendPatternConfig(linear).set_root_node_getter("my.root"),
          {"configs[0].root_node_getter", "my.root"});
  refused(BackendPatternConfig(linear).set_extra_inputs_getter("my.inputs"),
          {"configs[0].extra_inputs_getter", "my.inputs"});
  refused(BackendPatternConfig(linear).set_reference_quantized_module("my.Reference"),
          {"reference", "my.Reference"});
  refused(BackendPatternConfig(functional).set_input_type_to_index({{"weight", 2}}),
          {"input_type_to_index", "weight", "2"});
  refused(BackendPatternConfig("torch.add").set_input_type_to_index({{"bias", 1}}),
          {"input_type_to_index", "torch.add"});
}

TEST(PtqMatch, TakesTorchsOwnPlacesOfOperands) {
  for (const std::string& name : builtin_backend_configs()) {
    SCOPED_TRACE(name);
    EXPECT_NO_THROW(ptq::check_config(builtin_backend_config(name)));
  }
}

}  // namespace
}  // namespace halftone
