#include "quant/select/layer_chooser.h"

#include <gmock/gmock.h>

#include "graph/test_support.h"

namespace halftone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Outcome = LayerReport::Outcome;

const std::vector<LayerInfo> kLayers = {
    {"words", "embedding", 1000, 64},    {"encoder.0.query", "linear", 64, 64},
    {"encoder.0.out", "linear", 64, 64}, {"encoder.1.query", "linear", 64, 64},
    {"head", "linear", 10, 64},
};

/// The outcome of every layer: a config, or "kept: " and why.
std::vector<std::string> choose_all(const QuantConfig& config, const QuantizeOptions& options,
                                    const std::vector<LayerInfo>& layers = kLayers) {
  LayerChooser chooser(config, options);
  std::vector<std::string> outcomes;
  for (const LayerInfo& layer : layers) {
    const LayerReport report = chooser.choose(layer);
    EXPECT_EQ(report.layer.name, layer.name);
    EXPECT_EQ(report.outcome == Outcome::kQuantized, report.config.has_value());
    outcomes.push_back(report.config ? report.config->describe() : "kept: " + report.reason);
  }
  chooser.finish();
  return outcomes;
}

std::string refusal(const QuantConfig& config, const QuantizeOptions& options,
                    const std::vector<LayerInfo>& layers = kLayers) {
  return message_of(ErrorCode::kInvalidArgument, [&] { choose_all(config, options, layers); });
}

const std::string kInt8 = QuantConfig("int8wo").describe();
const std::string kNoEmbedding = "kept: embeddings are quantized only where that is asked for";

TEST(LayerChooser, TakesEveryLinear) {
  EXPECT_EQ(choose_all("int8wo", {}), (std::vector<std::string>{kNoEmbedding, kInt8, kInt8, kInt8, kInt8}));
}

TEST(LayerChooser, TakesEmbeddingsWhenAsked) {
  EXPECT_EQ(choose_all("int8wo", {.embeddings = true}).front(), kInt8);
  EXPECT_EQ(choose_all("fp8wo", {.embeddings = true}).front(),
            "kept: Float8WeightOnlyConfig() has no kernel for embeddings");
}

TEST(LayerChooser, EmbeddingsHaveNoActivations) {
  EXPECT_EQ(choose_all("int8dq", {.embeddings = true}).front(), kInt8);
  const Int4WeightOnlyConfig with_activations{64, false, Int4Activations::kInt8};
  EXPECT_EQ(embedding_config(with_activations), QuantConfig(Int4WeightOnlyConfig{64, false}));
}

TEST(LayerChooser, PatternsMustMatchTheWholeName) {
  const std::string kept = "kept: include \"encoder\\..*\" does not match";
  EXPECT_EQ(choose_all("int8wo", {.include = "encoder\\..*"}),
            (std::vector<std::string>{kept, kInt8, kInt8, kInt8, kept}));
  EXPECT_THAT(refusal("int8wo", {.include = "encoder"}),
              HasSubstr("include pattern \"encoder\" matches none of the 5 layers"));
}

TEST(LayerChooser, ExcludeIsStrongerThanInclude) {
  const auto outcomes = choose_all("int8wo", {.include = "encoder.*", .exclude = ".*query"});
  EXPECT_EQ(outcomes[1], "kept: exclude \".*query\" matches");
  EXPECT_EQ(outcomes[2], kInt8);
}

TEST(LayerChooser, TheFirstOverrideIsStrongerThanEverything) {
  const auto outcomes = choose_all(
      "int8wo",
      {.exclude = "head|.*out",
       .filter = [](const LayerInfo&) { return false; },
       .min_weights = 1 << 30,
       .overrides = {
           {"head", "int4wo"}, {"h.*", "fp8wo"}, {"words", "int8wo"}, {"encoder.0.query", "noquant"}}});
  EXPECT_EQ(outcomes, (std::vector<std::string>{kInt8, "kept: override \"encoder.0.query\" says noquant",
                                                "kept: exclude \"head|.*out\" matches",
                                                "kept: fewer than 1073741824 weights",
                                                QuantConfig("int4wo").describe()}));
}

TEST(LayerChooser, FilterSeesTheLayer) {
  const auto outcomes = choose_all(
      "int8wo", {.filter = [](const LayerInfo& layer) { return layer.n == 10 && layer.kind == "linear"; }});
  EXPECT_EQ(outcomes[1], "kept: the filter says no");
  EXPECT_EQ(outcomes[4], kInt8);
}

TEST(LayerChooser, NoquantWithOverridesQuantizesThoseOnly) {
  const auto outcomes = choose_all("noquant", {.overrides = {{"head", "int8wo"}}});
  EXPECT_EQ(outcomes[1], "kept: the scheme is noquant");
  EXPECT_EQ(outcomes[4], kInt8);
}

TEST(LayerChooser, RefusesPatternsThatDoNotParse) {
  EXPECT_THAT(refusal("int8wo", {.include = "a("}),
              HasSubstr("include pattern \"a(\" is no regular expression"));
  EXPECT_THAT(refusal("int8wo", {.exclude = "[z-a]"}), HasSubstr("exclude pattern \"[z-a]\""));
  EXPECT_THAT(refusal("int8wo", {.overrides = {{"*", "int8wo"}}}), HasSubstr("override pattern \"*\""));
}

TEST(LayerChooser, RefusesPatternsThatMatchNothing) {
  EXPECT_THAT(refusal("int8wo", {.exclude = "heads"}),
              AllOf(HasSubstr("exclude pattern \"heads\""), HasSubstr("did you mean \"head\"?"),
                    HasSubstr("encoder.1.query")));
  EXPECT_THAT(refusal("int8wo", {.overrides = {{"tail", "int8wo"}}}), HasSubstr("override pattern \"tail\""));
}

TEST(LayerChooser, AnOverrideBehindAnotherStillMatches) {
  EXPECT_NO_THROW(choose_all("int8wo", {.overrides = {{"h.*", "int4wo"}, {"head", "int8wo"}}}));
}

TEST(LayerChooser, SaysWhyNothingIsLeft) {
  EXPECT_THAT(refusal("int8wo", {.min_weights = 5000}),
              AllOf(HasSubstr("nothing to quantize"), HasSubstr("head: fewer than 5000 weights"),
                    HasSubstr("words: embeddings are")));
  EXPECT_THAT(refusal("int8wo", {}, {}), HasSubstr("nothing to quantize: the model has no linear layers"));
}

TEST(LayerChooser, NamesEveryLayerThatTheFormatRefuses) {
  const std::vector<LayerInfo> layers = {
      {"a", "linear", 8, 64}, {"b", "linear", 8, 70000}, {"c", "linear", 8, 100000}};
  EXPECT_THAT(refusal("int8dq", {}, layers), AllOf(HasSubstr("2 layers cannot have the format"),
                                                   HasSubstr("\n  b: "), HasSubstr("\n  c: ")));
  EXPECT_NO_THROW(choose_all("int8dq", {.exclude = "b|c"}, layers));
}

TEST(LayerChooser, LayersWithAnObstacleAreKept) {
  LayerChooser chooser("int8wo", {});
  const LayerReport report = chooser.choose(kLayers[1], {.obstacle = "the graph writes to its weight"});
  EXPECT_EQ(report.outcome, Outcome::kKept);
  EXPECT_EQ(report.reason, "the graph writes to its weight");
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { chooser.finish(); }),
              HasSubstr("the graph writes"));
}

TEST(LayerChooser, ListsLayersThatAreQuantizedAlready) {
  LayerChooser chooser("int8wo", {});
  const LayerReport report = chooser.choose(kLayers[1], {.already = "int8weightonly"});
  EXPECT_EQ(report.outcome, Outcome::kAlready);
  EXPECT_EQ(report.config, QuantConfig("int8wo"));
  EXPECT_NO_THROW(chooser.finish());
}

TEST(LayerChooser, AnotherSchemeOnAQuantizedLayerIsAnError) {
  LayerChooser chooser("int4wo", {});
  EXPECT_THAT(
      message_of(ErrorCode::kInvalidArgument, [&] { chooser.choose(kLayers[1], {.already = "int8wo"}); }),
      AllOf(HasSubstr("encoder.0.query"), HasSubstr("Int8WeightOnlyConfig"),
            HasSubstr("Int4WeightOnlyConfig")));
  LayerChooser filtered("int4wo", {.include = "head"});
  EXPECT_EQ(filtered.choose(kLayers[1], {.already = "int8wo"}).outcome, Outcome::kAlready);
  EXPECT_EQ(filtered.choose(kLayers[4]).outcome, Outcome::kQuantized);
  EXPECT_NO_THROW(filtered.finish());
}

TEST(LayerChooser, QuantizedLayersThatWereNotAskedForAreNoWork) {
  LayerChooser chooser("int8wo", {.filter = [](const LayerInfo&) { return false; }});
  chooser.choose(kLayers[1], {.already = "int8wo"});
  EXPECT_THROW(chooser.finish(), Error);
}

}  // namespace
}  // namespace halftone
