#include "halftone/ptq/qconfig.h"

#include <gtest/gtest.h>

#include <string>

#include "halftone/base/error.h"

namespace halftone {
namespace {

/// Tells qconfigs apart by their number of bins.
QConfig numbered(int64_t bins) {
  QConfig qconfig = default_qconfig("x86");
  qconfig.activation.bins = bins;
  return qconfig;
}

int64_t bins_of(const QConfigMapping::Value& value) {
  return value ? value->activation.bins : -1;
}

QConfigMapping every_level() {
  return QConfigMapping()
      .set_global(numbered(1))
      .set_object_type("torch.nn.Linear", numbered(2))
      .set_module_name_regex("encoder\\.[0-9]+", numbered(3))
      .set_module_name_regex("encoder", numbered(4))
      .set_module_name("encoder.1.out", numbered(5))
      .set_module_name("head", std::nullopt)
      .set_module_name_object_type_order("encoder.1.out", "torch.add", 1, numbered(6));
}

std::string refusal_of(const std::string& json) {
  try {
    QConfigMapping::from_dict(json, "q.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptFile) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown for " << json;
  return {};
}

TEST(QConfigMapping, StrongerLevelsCount) {
  const QConfigMapping mapping = every_level();
  EXPECT_EQ(bins_of(mapping.find("other", {"torch.add"}, 0)), 1);
  EXPECT_EQ(bins_of(mapping.find("other", {"torch.nn.Linear"}, 0)), 2);
  EXPECT_EQ(bins_of(mapping.find("encoder.0.query", {"torch.nn.Linear"}, 0)), 3);
  EXPECT_EQ(bins_of(mapping.find("encoder.norm", {"torch.nn.Linear"}, 0)), 4);
  EXPECT_EQ(bins_of(mapping.find("an.encoder", {"torch.add"}, 0)), 1)
      << "a pattern begins at the name's beginning";
  EXPECT_EQ(bins_of(mapping.find("encoder.1.out", {"torch.add"}, 0)), 5);
  EXPECT_EQ(bins_of(mapping.find("encoder.1.out.dense", {"torch.add"}, 1)), 5) << "layers inside it too";
  EXPECT_EQ(bins_of(mapping.find("encoder.1.out", {"torch.add"}, 1)), 6);
  EXPECT_EQ(bins_of(mapping.find("head.dense", {"torch.nn.Linear"}, 0)), -1) << "not quantized";
}

TEST(QConfigMapping, SettingAgainKeepsTheOrder) {
  QConfigMapping mapping = every_level();
  mapping.set_module_name_regex("encoder\\.[0-9]+", numbered(30));
  EXPECT_EQ(bins_of(mapping.find("encoder.0.query", {}, 0)), 30);
}

TEST(QConfigMapping, DictThereAndBack) {
  const QConfigMapping mapping = every_level();
  EXPECT_EQ(QConfigMapping::from_dict(mapping.to_dict()), mapping);
  for (const char* backend : {"x86", "fbgemm", "qnnpack", "onednn"}) {
    const QConfigMapping usual = default_qconfig_mapping(backend);
    EXPECT_EQ(QConfigMapping::from_dict(usual.to_dict()), usual) << backend;
  }
  EXPECT_EQ(bins_of(QConfigMapping::from_dict(R"({"": "default_dynamic"})").find("x", {}, 0)), 2048);
}

TEST(QConfigMapping, ErrorsHaveThePathToTheKey) {
  EXPECT_NE(refusal_of(R"({"global": null})").find("unknown key \"global\""), std::string::npos);
  EXPECT_NE(refusal_of(R"({"": "default_dinamic"})").find("default_dynamic"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"object_type": [["torch.nn.Linnear", null]]})").find("q.json.object_type[0]"),
            std::string::npos);
  EXPECT_NE(refusal_of(R"({"module_name_regex": [["a(", null]]})").find("no regular expression"),
            std::string::npos);
  EXPECT_NE(refusal_of(R"({"module_name": [["a"]]})").find("q.json.module_name[0]: expected an array of 2"),
            std::string::npos);
  EXPECT_NE(
      refusal_of(R"({"module_name_object_type_order": [["a", "torch.add", -1, null]]})").find("negative"),
      std::string::npos);
  const auto observer = [](const std::string& fields) {
    return refusal_of(R"({"": {"activation": {"type": "HistogramObserver"}, "weight": {)" + fields + "}}}");
  };
  EXPECT_NE(observer(R"("type": "MinMaxObserver", "bins": 9)").find("unknown key \"bins\""),
            std::string::npos);
  EXPECT_NE(observer(R"("type": "MinMaxObserver", "dtype": "float32")").find("no range"), std::string::npos);
  EXPECT_NE(
      observer(R"("type": "MinMaxObserver", "qscheme": "per_channel_affine")").find("cannot have the scheme"),
      std::string::npos);
  EXPECT_NE(observer(R"("type": "MinMaxObserver", "quant_min": 3)").find("or neither"), std::string::npos);
  EXPECT_NE(observer(R"("type": "FixedQParamsObserver", "scale": 0.5)").find("zero_point"),
            std::string::npos);
  EXPECT_NE(observer(R"("type": "MinMaxObserver", "eps": 0)").find("above 0"), std::string::npos);
  EXPECT_NE(observer(R"("type": "MinMax")").find("there is no observer"), std::string::npos);
}

TEST(ObserverConfig, RangesAreThoseOfPython) {
  ObserverConfig config;
  EXPECT_EQ(config.range(), (std::pair<int64_t, int64_t>{0, 255}));
  config.reduce_range = true;
  EXPECT_EQ(config.range(), (std::pair<int64_t, int64_t>{0, 127}));
  config.quant_min = -127;
  config.quant_max = 127;
  EXPECT_EQ(config.range(), (std::pair<int64_t, int64_t>{-64, 63})) << "halves are rounded down";
  config = ObserverConfig(ObserverKind::kPerChannelMinMax);
  config.dtype = ConfigDType::kQInt8;
  config.reduce_range = true;
  EXPECT_EQ(config.range(), (std::pair<int64_t, int64_t>{-64, 63}));
}

}  // namespace
TEST(QConfigMapping, WidthsOfStaticInt8) {
  EXPECT_EQ(static_int8_mapping({.activation = 7, .weight = 8}), default_qconfig_mapping("x86"));
  const QConfigMapping narrow = static_int8_mapping({.activation = 8, .weight = 7});
  for (const char* type : {"torch.nn.Conv2d", "torch.nn.ConvTranspose2d"}) {
    const auto qconfig = narrow.find("", {type}, 0);
    ASSERT_TRUE(qconfig);
    EXPECT_EQ(qconfig->activation.range(), (std::pair<int64_t, int64_t>{0, 255}));
    EXPECT_EQ(qconfig->weight.range(), (std::pair<int64_t, int64_t>{-64, 63}));
  }
  EXPECT_EQ(QConfigMapping::from_dict(narrow.to_dict()), narrow);
  EXPECT_THROW(static_int8_mapping({.activation = 6}), Error);
}

}  // namespace halftone
