#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/expect_error.h"
#include "halftone/quant/config.h"
#include "quant/config/config_types.h"

namespace halftone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename Call>
std::string refusal(const Call& call, ErrorCode code = ErrorCode::kInvalidArgument) {
  return message_of(code, call);
}

std::vector<QuantConfig> samples() {
  return {Int8WeightOnlyConfig{},
          Int8DynamicActivationInt8WeightConfig{},
          Int8DynamicActivationInt8WeightConfig{.symmetric_activations = true, .weight_bits = 7},
          Int4WeightOnlyConfig{},
          Int4WeightOnlyConfig{.group_size = 128, .symmetric = false, .activations = Int4Activations::kInt8},
          Int4WeightOnlyConfig{.rounding = Int4Rounding::kSearch},
          Float8WeightOnlyConfig{.granularity = Granularity::kPerTensor},
          Float8DynamicActivationFloat8WeightConfig{},
          IntxWeightOnlyConfig{.bits = 3, .group_size = 0},
          Bf16WeightOnlyConfig{},
          NoQuantConfig{}};
}

TEST(QuantConfig, JsonThereAndBack) {
  for (const QuantConfig& config : samples()) {
    EXPECT_EQ(QuantConfig::from_json(config.to_json()), config) << config.to_json();
    EXPECT_EQ(QuantConfig::of_type(config.type(), config.fields()), config);
  }
}

TEST(QuantConfig, KeysDifferWhereConfigsDo) {
  std::set<std::string> keys;
  for (const QuantConfig& config : samples()) keys.insert(config.key());
  EXPECT_EQ(keys.size(), samples().size());
}

TEST(QuantConfig, KeyIsStable) {
  // The hash of canonical JSON stands in files: this value may never change. Computed with sha256sum.
  EXPECT_EQ(QuantConfig("int8wo").to_json(), R"({"type":"Int8WeightOnlyConfig"})");
  EXPECT_EQ(QuantConfig("int8wo").key(), "Int8WeightOnlyConfig-aaccc50325e20af4");
  EXPECT_EQ(QuantConfig(Int4WeightOnlyConfig{.group_size = 64}).to_json(),
            R"({"activations":"float","group_size":64,"symmetric":true,"type":"Int4WeightOnlyConfig"})");
  EXPECT_EQ(QuantConfig(Int4WeightOnlyConfig{.group_size = 64}).key(),
            "Int4WeightOnlyConfig-fe30f3d6f428bd0c");
}

TEST(QuantConfig, AFieldThatCameLaterLeavesTheKeysOfBefore) {
  const QuantConfig spelled =
      QuantConfig::from_json(R"({"type":"Int4WeightOnlyConfig","rounding":"nearest"})");
  EXPECT_EQ(spelled, QuantConfig(Int4WeightOnlyConfig{}));
  EXPECT_EQ(spelled.to_json(),
            R"({"activations":"float","group_size":32,"symmetric":true,"type":"Int4WeightOnlyConfig"})");
  const QuantConfig search(Int4WeightOnlyConfig{.rounding = Int4Rounding::kSearch});
  EXPECT_EQ(search.fields(),
            R"({"activations":"float","group_size":32,"rounding":"search","symmetric":true})");
  EXPECT_EQ(search.describe(), "Int4WeightOnlyConfig(rounding=search)");
}

TEST(QuantConfig, NameStructAndJsonAreOneConfig) {
  const QuantConfig named("int4weightonly");
  EXPECT_EQ(named, QuantConfig(Int4WeightOnlyConfig{}));
  EXPECT_EQ(named, QuantConfig::from_json(R"({"type": "Int4WeightOnlyConfig"})"));
  EXPECT_EQ(named.key(), QuantConfig("int4wo").key());
  EXPECT_EQ(named.as<Int4WeightOnlyConfig>(), Int4WeightOnlyConfig{});
  EXPECT_EQ(named.as<Int8WeightOnlyConfig>(), std::nullopt);
}

TEST(QuantConfig, DescribesOnlyWhatDiffersFromTheDefault) {
  EXPECT_EQ(QuantConfig(Int4WeightOnlyConfig{}).describe(), "Int4WeightOnlyConfig()");
  EXPECT_EQ(
      QuantConfig(Int4WeightOnlyConfig{.group_size = 64, .activations = Int4Activations::kInt8}).describe(),
      "Int4WeightOnlyConfig(activations=int8, group_size=64)");
}

TEST(QuantConfig, RefusesWhatATypeDoesNotTake) {
  EXPECT_THAT(refusal([] { QuantConfig(Int4WeightOnlyConfig{.group_size = 48}); }),
              HasSubstr("group_size must be one of 32, 64, 128, 256, not 48"));
  EXPECT_THAT(refusal([] { QuantConfig(Int8DynamicActivationInt8WeightConfig{.weight_bits = 6}); }),
              HasSubstr("weight_bits must be one of 7, 8, not 6"));
  EXPECT_THAT(refusal([] { QuantConfig(IntxWeightOnlyConfig{.bits = 9}); }),
              HasSubstr("bits must be one of"));
  EXPECT_THAT(refusal([] { QuantConfig::of_type("Int4WeightOnlyConfig", R"({"groupsize": 32})"); }),
              HasSubstr("no field \"groupsize\" (did you mean \"group_size\"?)"));
  EXPECT_THAT(refusal([] { QuantConfig::of_type("Int4WeightOnlyConfig", R"({"group_size": "32"})"); }),
              HasSubstr("field \"group_size\" must be a number"));
  EXPECT_THAT(refusal([] { QuantConfig::of_type("Float8WeightOnlyConfig", R"({"granularity": "rows"})"); }),
              HasSubstr("must be \"per_row\" or \"per_tensor\", not \"rows\""));
  EXPECT_THAT(refusal([] { QuantConfig::of_type("Int4WeightOnlyConfig", R"({"group_size": 99999999999})"); }),
              HasSubstr("out of range"));
  EXPECT_THAT(refusal([] { QuantConfig::of_type("Int4WeightOnlyConfig", R"({"rounding": "up"})"); }),
              HasSubstr("rounding must be \"nearest\" or \"search\", not \"up\""));
  EXPECT_THAT(refusal([] { QuantConfig::of_type("Int4Config"); }),
              HasSubstr("unknown config type \"Int4Config\""));
  EXPECT_THAT(refusal([] { QuantConfig::from_json("[]"); }), HasSubstr("a string \"type\""));
  EXPECT_THAT(refusal([] { QuantConfig::from_json("{"); }), HasSubstr("config"));
}

TEST(Schemes, UnknownNameListsTheKnownAndTheNearest) {
  const std::string message = refusal([] { QuantConfig("int8w0"); });
  EXPECT_THAT(message, HasSubstr("unknown scheme \"int8w0\" (did you mean \"int8wo\"?)"));
  for (const Scheme& scheme : schemes()) EXPECT_THAT(message, HasSubstr(scheme.names.front()));
  EXPECT_THAT(refusal([] { QuantConfig("autoquant"); }, ErrorCode::kUnsupported),
              AllOf(HasSubstr("no config"), HasSubstr("halftone/tune/autoquant.h"),
                    HasSubstr("halftone autoquant MODEL")));
  for (const SchemeWithoutConfig& scheme : schemes_without_config()) {
    const std::string reason = refusal([&] { QuantConfig{scheme.name}; }, ErrorCode::kUnsupported);
    EXPECT_THAT(reason,
                AllOf(HasSubstr("\"" + scheme.name + "\" " + scheme.how),
                      HasSubstr(scheme.needs_data ? "halftone ptq MODEL" : "halftone autoquant MODEL")));
  }
}

TEST(Schemes, NamesOfEveryCommandAreConfigs) {
  EXPECT_EQ(QuantConfig("int8dq-7bit"), QuantConfig(Int8DynamicActivationInt8WeightConfig{.weight_bits = 7}));
  const Int4WeightOnlyConfig dynamic{.activations = Int4Activations::kInt8};
  EXPECT_EQ(QuantConfig("int4wo-int8act"), QuantConfig(dynamic));
  EXPECT_EQ(QuantConfig("int4dq"), QuantConfig(dynamic));
  EXPECT_EQ(QuantConfig("fp32"), QuantConfig(NoQuantConfig{}));
  EXPECT_EQ(QuantConfig("int4wo:32"), QuantConfig("int4wo"));
  EXPECT_EQ(QuantConfig("int4weightonly:128"), QuantConfig(Int4WeightOnlyConfig{.group_size = 128}));
  EXPECT_EQ(QuantConfig("int4dq:64"),
            QuantConfig(Int4WeightOnlyConfig{.group_size = 64, .activations = Int4Activations::kInt8}));
  EXPECT_THAT(refusal([] { QuantConfig("int4wo:48"); }), HasSubstr("one of 32, 64, 128, 256"));
  EXPECT_THAT(refusal([] { QuantConfig("int8wo:32"); }), HasSubstr("unknown scheme"));
  // It is int8dq in the list of kernels, and might be int8wo here.
  EXPECT_THAT(refusal([] { QuantConfig("int8"); }), AllOf(HasSubstr("int8dq"), HasSubstr("int8wo")));
  EXPECT_THAT(refusal([] { QuantConfig("bf16"); }, ErrorCode::kUnsupported), HasSubstr("bf16wo"));
}

TEST(Schemes, ConfigsHaveTheirShortName) {
  for (const Scheme& scheme : schemes()) EXPECT_EQ(scheme_name(scheme.config), scheme.names.front());
  const QuantConfig other = Int4WeightOnlyConfig{.group_size = 64};
  EXPECT_EQ(scheme_name(other), other.describe());
}

TEST(Schemes, EveryNameIsItsConfigAndNoneIsTwice) {
  std::set<std::string> seen;
  for (const Scheme& scheme : schemes()) {
    for (const std::string& name : scheme.names) {
      EXPECT_EQ(QuantConfig(name), scheme.config);
      EXPECT_TRUE(seen.insert(name).second) << name;
    }
  }
}

TEST(ConfigTypes, UsersBringTheirOwn) {
  register_fields("TernaryConfig", R"({"threshold": 0.5, "group": 64})", [](std::string_view fields) {
    if (fields.find("\"group\":0") != std::string_view::npos)
      throw Error(ErrorCode::kInvalidArgument, "group is 0");
  });
  const QuantConfig config = QuantConfig::of_type("TernaryConfig", R"({"threshold": 1})");
  EXPECT_EQ(config.to_json(), R"({"group":64,"threshold":1.0,"type":"TernaryConfig"})");
  EXPECT_EQ(config.describe(), "TernaryConfig(threshold=1.0)");
  EXPECT_EQ(config, QuantConfig::of_type("TernaryConfig", R"({"threshold": 1.0})"));
  EXPECT_THAT(refusal([] { QuantConfig::of_type("TernaryConfig", R"({"group": 0})"); }),
              HasSubstr("group is 0"));
  EXPECT_THAT(refusal([] { QuantConfig::of_type("TernaryConfig", R"({"group": 0.5})"); }),
              HasSubstr("\"group\""));
  EXPECT_THAT(refusal([] { register_fields("TernaryConfig", "{}", {}); }), HasSubstr("registered already"));
  EXPECT_THAT(refusal([] { register_fields("Other", R"({"type": 1})", {}); }),
              HasSubstr("cannot be called \"type\""));
}

}  // namespace
}  // namespace halftone
