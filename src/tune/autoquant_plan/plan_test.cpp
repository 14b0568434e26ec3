// Plans as JSON and as text, with names of every kind.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "archive/bytes/terminal_text.h"
#include "archive/bytes/text.h"
#include "archive/test_payloads.h"
#include "graph/test_support.h"
#include "tune/autoquant_plan/test_plans.h"
#include "tune/test_support.h"

namespace halftone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(AutoquantSchemes, AreThoseOfSchemes) {
  std::vector<std::string> names;
  for (const AutoquantScheme& scheme : autoquant_schemes()) {
    names.push_back(scheme.name);
    EXPECT_EQ(autoquant_scheme(scheme.name).config, scheme.config);
  }
  EXPECT_THAT(names, ElementsAre("fp32", "int8wo", "int8dq", "int8dq-7bit", "int4wo", "int4wo-int8act",
                                 "bf16wo", "fp8wo", "fp8dq"));
  EXPECT_FALSE(autoquant_scheme("fp32").config.has_value());
  EXPECT_EQ(autoquant_scheme("int8wo").config, QuantConfig("int8wo"));
  EXPECT_THAT(autoquant_scheme("int8dq-7bit").config->describe(), HasSubstr("weight_bits=7"));
  EXPECT_THAT(autoquant_scheme("int4wo-int8act").config->describe(), HasSubstr("activations=int8"));
  EXPECT_EQ(autoquant_scheme("noquant").name, "fp32");
  EXPECT_EQ(autoquant_scheme("int8dynamic").name, "int8dq");
  EXPECT_EQ(autoquant_scheme("int4dq").name, "int4wo-int8act");
  EXPECT_EQ(autoquant_scheme("int4wo:32").name, "int4wo");
  EXPECT_EQ(autoquant_scheme("int4wo:64").config, QuantConfig(Int4WeightOnlyConfig{.group_size = 64}));
  EXPECT_EQ(autoquant_scheme("int4dq:128").name, "int4wo-int8act:128");
  expect_error(ErrorCode::kUnsupported, {"\"int8static\"", "halftone ptq MODEL"},
               [] { autoquant_scheme("int8static"); });
  expect_error(ErrorCode::kUnsupported, {"\"autoquant\"", "by measuring"},
               [] { autoquant_scheme("autoquant"); });
  expect_error(ErrorCode::kInvalidArgument, {"\"int8dq-7bits\"", "did you mean \"int8dq-7bit\"?", "fp32"},
               [] { autoquant_scheme("int8dq-7bits"); });
}

TEST(AutoquantPlan, ComesBackFromJsonAsItWas) {
  const AutoquantPlan plan = full_plan();
  const std::string json = plan.to_json();
  EXPECT_EQ(AutoquantPlan::from_json(json, "p.json"), plan);
  EXPECT_EQ(AutoquantPlan::from_json(json, "p.json").to_json(), json);
  EXPECT_EQ(AutoquantPlan::from_json(AutoquantPlan{}.to_json(), "p.json"), AutoquantPlan{});
}

TEST(AutoquantPlan, IsReadable) {
  const std::string json = full_plan().to_json();
  EXPECT_THAT(json, HasSubstr("\n        {\"sizes\": [8, 128, 384], \"dtype\": \"f32\", \"calls\": 4},\n"));
  EXPECT_THAT(json,
              HasSubstr("\n        {\"scheme\": \"int8dq\", \"milliseconds\": 0.7, \"error\": 0.0001},\n"));
  EXPECT_THAT(json, HasSubstr("\n      \"choice\": \"int8dq\",\n"));
  for (const std::string& line : lines_of(json)) EXPECT_LE(line.size(), 144U) << line;
}

TEST(AutoquantPlan, MayBeWrittenByHand) {
  const AutoquantPlan plan = AutoquantPlan::from_json(
      R"({"layers": [{"name": "up", "choice": "int4wo"}, {"name": "a.*b", "choice": "int8dq-7bit"},
                     {"name": "head", "choice": "fp32", "candidates": null}]})",
      "hand.json");
  EXPECT_TRUE(plan.quantizes());
  ASSERT_EQ(plan.layers.size(), 3U);
  const auto overrides = plan.overrides();
  ASSERT_EQ(overrides.size(), 2U);
  EXPECT_EQ(overrides[0].first, "up");
  EXPECT_EQ(overrides[0].second, QuantConfig("int4wo"));
  EXPECT_EQ(overrides[1].first, R"(a\.\*b)");  // a name is not a pattern
  EXPECT_EQ(AutoquantPlan::from_json(plan.to_json(), "again.json"), plan);
  EXPECT_FALSE(AutoquantPlan::from_json(R"({"layers": []})", "none.json").quantizes());
}

TEST(AutoquantPlan, AnEntryDecidesForThoseBesideItUnlessTheyHaveTheirOwn) {
  const AutoquantPlan plan = AutoquantPlan::from_json(
      R"({"layers": [{"name": "q", "choice": "int8wo", "together": ["k", "v"]}, {"name": "v", "choice": "int4wo"}]})",
      "hand.json");
  std::vector<std::string> got;
  for (const auto& [pattern, config] : plan.overrides()) got.push_back(pattern + " " + config.type());
  EXPECT_THAT(got, ElementsAre("q Int8WeightOnlyConfig", "k Int8WeightOnlyConfig", "v Int4WeightOnlyConfig"));
}

TEST(AutoquantPlan, GoesThroughAFile) {
  const TestFolder folder;
  const std::string path = (folder.path / "p.json").string();
  write_autoquant_plan(path, full_plan());
  EXPECT_EQ(read_autoquant_plan(path), full_plan());
  write_autoquant_plan(path, AutoquantPlan{});
  EXPECT_EQ(read_autoquant_plan(path), AutoquantPlan{});
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path), {}), 1);
  expect_error(ErrorCode::kNotFound, {"none.json"},
               [&] { read_autoquant_plan((folder.path / "none.json").string()); });
}

TEST(AutoquantPlan, TextFitsAPage) {
  AutoquantPlan plan = full_plan("encoder.layer.11.attention.self.query");
  plan.layers.front().reason =
      "fastest of 7 within the layer's bound; given back because the model's budget asked for it";
  const std::string text = plan.to_text();
  for (const std::string& line : lines_of(text)) {
    EXPECT_LE(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }), 100) << line;
  }
  EXPECT_THAT(text, HasSubstr("384×1536"));
  EXPECT_THAT(text, HasSubstr("8×128×384 +1"));
  EXPECT_THAT(text, HasSubstr("int8dq"));
  EXPECT_THAT(text, HasSubstr("0.700"));
  EXPECT_THAT(text, HasSubstr("1.50"));
  EXPECT_THAT(text, HasSubstr("2.00 x"));
  EXPECT_THAT(text, HasSubstr("0.99700"));
  EXPECT_THAT(text, HasSubstr("(2) not seen in calibration"));
  EXPECT_THAT(text, HasSubstr("a note"));
  EXPECT_THAT(text, HasSubstr("1 of 2 layers"));
}

TEST(AutoquantPlan, HostileNamesGoThroughJsonUnharmed) {
  const std::vector<Payload> payloads = load_payloads();
  ASSERT_GE(payloads.size(), 40U);
  for (const Payload& payload : payloads) {
    SCOPED_TRACE(payload.what);
    const std::string json = full_plan(payload.text).to_json();
    EXPECT_TRUE(is_utf8(json));
    const AutoquantPlan back = AutoquantPlan::from_json(json, "p.json");
    EXPECT_EQ(back, full_plan(utf8_text(payload.text)));
    EXPECT_EQ(nlohmann::json::parse(json)["layers"][0]["name"], utf8_text(payload.text));
  }
}

TEST(AutoquantPlan, HostileNamesDoNothingToATerminal) {
  for (const Payload& payload : load_payloads()) {
    SCOPED_TRACE(payload.what);
    const AutoquantPlan plan = full_plan(payload.text);
    const std::string text = plan.to_text();
    EXPECT_TRUE(is_utf8(text));
    // Every line is the table's own: nothing that a name holds makes another one or moves the cursor.
    for (const std::string& line : lines_of(text)) {
      EXPECT_EQ(terminal_text(line, 1 << 20), line);
      EXPECT_LE(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }), 100) << line;
    }
  }
}

}  // namespace
}  // namespace halftone
