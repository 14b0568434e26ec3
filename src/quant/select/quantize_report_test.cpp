#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "halftone/quant/quantize.h"

namespace halftone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Outcome = LayerReport::Outcome;

QuantizeReport example() {
  QuantizeReport report;
  report.layers = {
      {{"encoder.layer.0.attention.query", "linear", 384, 384},
       Outcome::kQuantized,
       QuantConfig("int8wo"),
       {},
       589824,
       148992},
      {{"encoder.layer.0.attention.key", "linear", 384, 384},
       Outcome::kAlready,
       QuantConfig("int4wo"),
       {},
       92160,
       92160},
      {{"words", "embedding", 30522, 384},
       Outcome::kKept,
       std::nullopt,
       "embeddings stay",
       46881792,
       46881792},
      {{"types", "embedding", 2, 384}, Outcome::kKept, std::nullopt, "embeddings stay", 3072, 3072},
  };
  report.bytes_before = 50'000'000;
  report.bytes_after = 25'000'000;
  return report;
}

TEST(QuantizeReport, Counts) {
  EXPECT_EQ(example().count(Outcome::kQuantized), 1U);
  EXPECT_EQ(example().count(Outcome::kAlready), 1U);
  EXPECT_EQ(example().count(Outcome::kKept), 2U);
}

TEST(QuantizeReport, TextHasLayersReasonsAndTotals) {
  const std::string text = example().to_text();
  EXPECT_THAT(text, HasSubstr("encoder.layer.0.attention.query  linear"));
  EXPECT_THAT(text, HasSubstr("30522 x 384  kept"));
  EXPECT_THAT(text, HasSubstr("- embeddings stay: words, types\n"));
  EXPECT_THAT(text, HasSubstr("1 layer quantized, 1 layer quantized before, 2 layers kept\n"));
  EXPECT_THAT(text, HasSubstr("Quantized weights: 589.8 kB -> 149.0 kB (3.96 times smaller)\n"));
  EXPECT_THAT(text, HasSubstr("Whole model:       50.0 MB -> 25.0 MB (2.00 times smaller)\n"));
}

TEST(QuantizeReport, TextFitsAHundredColumns) {
  QuantizeReport report = example();
  for (int i = 0; i < 40; ++i) {
    report.layers.push_back({{std::string(200, 'x') + "." + std::to_string(i), "embedding", 128256, 16384},
                             Outcome::kQuantized,
                             QuantConfig(Int4WeightOnlyConfig{256, false, Int4Activations::kInt8}),
                             "its embedding keeps the weight as it was, which takes memory",
                             int64_t{128256} * 16384 * 4,
                             int64_t{128256} * 16384 / 2});
  }
  std::istringstream lines(report.to_text());
  for (std::string line; std::getline(lines, line);) {
    if (line.find(std::string(150, 'x')) != std::string::npos) continue;  // a single word is never broken
    EXPECT_LE(line.size(), 104U) << line;                                 // an ellipsis has three bytes
  }
}

TEST(QuantizeReport, JsonHoldsEverything) {
  const auto json = nlohmann::json::parse(example().to_json());
  ASSERT_EQ(json["layers"].size(), 4U);
  EXPECT_EQ(json["layers"][0]["outcome"], "quantized");
  EXPECT_EQ(json["layers"][0]["config"]["type"], "Int8WeightOnlyConfig");
  EXPECT_EQ(json["layers"][0]["bytes_after"], 148992);
  EXPECT_EQ(json["layers"][1]["outcome"], "already");
  EXPECT_EQ(json["layers"][2]["reason"], "embeddings stay");
  EXPECT_FALSE(json["layers"][2].contains("config"));
  EXPECT_EQ(json["quantized"], 1);
  EXPECT_EQ(json["kept"], 2);
  EXPECT_EQ(json["ratio"], 2.0);
}

TEST(QuantizeReport, SaysWhatWasLeftAlone) {
  QuantizeReport report = example();
  report.left_alone = {{"convolution", 20, 30'000'000, 0.6, "halftone ptq"},
                       {"other weight", 1, 1000, 0.00002, ""}};
  const std::string text = report.to_text();
  EXPECT_THAT(text,
              HasSubstr("- 20 convolutions (30.0 MB, 60.0 % of the bytes) are not touched by this scheme: "
                        "halftone ptq\n"));
  EXPECT_THAT(text,
              HasSubstr("- 1 other weight (1.0 kB, 0.0 % of the bytes) is not touched by this scheme\n"));
  ASSERT_EQ(report.warnings().size(), 1U);
  EXPECT_THAT(report.warnings()[0],
              AllOf(HasSubstr("60.0 %"), HasSubstr("20 convolutions"), HasSubstr("halftone ptq")));
  const auto json = nlohmann::json::parse(report.to_json());
  EXPECT_EQ(json["left_alone"][0]["kind"], "convolution");
  EXPECT_EQ(json["left_alone"][0]["count"], 20);
  EXPECT_EQ(json["left_alone"][0]["bytes"], 30'000'000);
  EXPECT_EQ(json["left_alone"][0]["share"], 0.6);
  EXPECT_EQ(json["left_alone"][0]["help"], "halftone ptq");
  EXPECT_EQ(json["warnings"].size(), 1U);
}

TEST(QuantizeReport, LessThanHalfLeftAloneIsNoWarning) {
  QuantizeReport report = example();
  report.left_alone = {{"embedding", 2, 24'000'000, 0.48, ""}};
  EXPECT_TRUE(report.warnings().empty());
}

TEST(QuantizeReport, ALargerModelIsNotCalledSmaller) {
  QuantizeReport report = example();
  report.bytes_after = 63'500'000;
  report.left_alone = {{"embedding", 1, 20'000'000, 0.4, "--embeddings"}};
  const std::string text = report.to_text();
  EXPECT_THAT(text, HasSubstr("Whole model:       50.0 MB -> 63.5 MB (1.27 times larger)\n"));
  EXPECT_THAT(text, Not(HasSubstr("0.79")));
  ASSERT_EQ(report.warnings().size(), 1U);
  EXPECT_THAT(report.warnings()[0], AllOf(HasSubstr("1.27 times larger"), HasSubstr("--embeddings")));
}

TEST(QuantizeReport, ATiedWeightCountsOnce) {
  QuantizeReport report = example();
  report.layers.push_back(report.layers[0]);
  report.layers.back().tied_to = report.layers[0].layer.name;
  report.layers.back().own_tensors = false;
  EXPECT_THAT(report.to_text(), HasSubstr("Quantized weights: 589.8 kB -> 149.0 kB (3.96 times smaller)\n"));
  report.layers.back().own_tensors = true;  // another config made other tensors of the same weight
  const auto json = nlohmann::json::parse(report.to_json());
  EXPECT_EQ(json["quantized_bytes_before"], 589824);
  EXPECT_EQ(json["quantized_bytes_after"], 2 * 148992);
  EXPECT_EQ(json["layers"][4]["tied_to"], "encoder.layer.0.attention.query");
}

}  // namespace
}  // namespace halftone
