#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "halftone/quantize.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
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

}  // namespace
}  // namespace halftone
