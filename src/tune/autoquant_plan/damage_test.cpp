// Every kind of damage to a plan's file: refused, with file and place.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "graph/test_support.h"
#include "tune/autoquant_plan/test_plans.h"

namespace halftone {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

struct PlanDamage {
  const char* pointer;  ///< where, as a JSON pointer
  const char* value;    ///< what stands there then; "": it is taken away
  const char* message;  ///< after the file's name
};

std::string refusal_of(const std::string& json) {
  return message_of(ErrorCode::kCorruptFile, [&] { AutoquantPlan::from_json(json, "p.json"); });
}

TEST(AutoquantPlanDamage, IsRefusedWithItsPlace) {
  const PlanDamage cases[] = {
      {"/layers", "", "p.json: key \"layers\" is missing"},
      {"/layers", "{}", "p.json.layers: expected an array"},
      {"/layers", "null", "p.json.layers: expected an array"},
      {"/layers/0", "7", "p.json.layers[0]: expected an object"},
      {"/layers/1/name", "", "p.json.layers[1]: key \"name\" is missing"},
      {"/layers/1/name", "3", "p.json.layers[1].name: expected a string, found a number"},
      {"/layers/1/name", "\"encoder.0\"", "p.json.layers[1].name: layer \"encoder.0\" stands here twice"},
      {"/layers/1/choice", "", "p.json.layers[1]: key \"choice\" is missing"},
      {"/layers/1/choice", "\"int8dp\"", "p.json.layers[1].choice: unknown scheme \"int8dp\" (did you mean"},
      {"/layers/1/choice", "\"\\u001b[2J\"", "p.json.layers[1].choice: unknown scheme \"\\x1b[2J\""},
      {"/layers/1/choise", "\"fp32\"", "p.json.layers[1]: unknown key \"choise\" (did you mean \"choice\"?)"},
      {"/layers/0/n", "-1", "p.json.layers[0].n: expected 0 or more, found -1"},
      {"/layers/0/k", "1.5", "p.json.layers[0].k: expected an integer"},
      {"/layers/0/k", "18446744073709551615", "p.json.layers[0].k: integer does not fit"},
      {"/layers/0/together", "\"x\"", "p.json.layers[0].together: expected an array"},
      {"/layers/0/together/0", "1", "p.json.layers[0].together[0]: expected a string"},
      {"/layers/0/together/1", "\"encoder.0\"", "p.json.layers[0].together[1]: is this layer itself"},
      {"/layers/0/shapes/0/sizes/1", "-8", "p.json.layers[0].shapes[0].sizes[1]: expected 0 or more"},
      {"/layers/0/shapes/0/calls", "true", "p.json.layers[0].shapes[0].calls: expected an integer"},
      {"/layers/0/shapes/1/size", "[]", "p.json.layers[0].shapes[1]: unknown key \"size\""},
      {"/layers/0/candidates/1/scheme", "\"int9\"", "p.json.layers[0].candidates[1].scheme: unknown scheme"},
      {"/layers/0/candidates/1/milliseconds", "-0.1",
       "p.json.layers[0].candidates[1].milliseconds: expected 0 or more"},
      {"/layers/0/candidates/1/milliseconds", "\"NaN\"",
       "p.json.layers[0].candidates[1].milliseconds: expected a time, found \"NaN\""},
      {"/layers/0/candidates/1/milliseconds", "\"Infinity\"",
       "p.json.layers[0].candidates[1].milliseconds: expected a time, found \"Infinity\""},
      {"/layers/0/candidates/1/error", "\"small\"",
       "p.json.layers[0].candidates[1].error: expected a number"},
      {"/layers/0/candidates/1/ms", "1", "p.json.layers[0].candidates[1]: unknown key \"ms\""},
      {"/runs/0/name", "", "p.json.runs[0]: key \"name\" is missing"},
      {"/runs/0/milliseconds", "\"NaN\"", "p.json.runs[0].milliseconds: expected a time, found \"NaN\""},
      {"/runs/0/milliseconds", "\"-Infinity\"", "p.json.runs[0].milliseconds: expected 0 or more"},
      {"/runs/1/relative", "\"NaN\"", "p.json.runs[1].relative: expected a time"},
      {"/runs/1/relative_low", "\"NaN\"", "p.json.runs[1].relative_low: expected a time"},
      {"/runs/1/relative_high", "\"Infinity\"", "p.json.runs[1].relative_high: expected a time"},
      {"/seconds", "\"NaN\"", "p.json.seconds: expected a time, found \"NaN\""},
      {"/runs/0/holds", "1", "p.json.runs[0].holds: expected a boolean"},
      {"/runs/1/speed", "1", "p.json.runs[1]: unknown key \"speed\""},
      {"/threads", "4294967296", "p.json.threads: expected at most"},
      {"/least_cosine", "-3", "p.json.least_cosine: expected -1 or more"},
      {"/notes/0", "{}", "p.json.notes[0]: expected a string"},
      {"/format", "\"halftone-tune-report\"", "p.json.format: is not \"halftone-autoquant-plan\""},
      {"/format_version", "2", "p.json.format_version: version 2 is not known, this Halftone reads 1"},
      {"/layer", "[]", "p.json: unknown key \"layer\" (did you mean \"layers\"?)"},
  };
  const std::string whole = full_plan().to_json();
  for (const PlanDamage& damage : cases) {
    SCOPED_TRACE(std::string(damage.pointer) + " = " + damage.value);
    Json json = Json::parse(whole);
    const Json::json_pointer place(damage.pointer);
    if (*damage.value == '\0') {
      json[place.parent_pointer()].erase(place.back());
    } else {
      json[place] = Json::parse(damage.value);
    }
    EXPECT_THAT(refusal_of(json.dump()), HasSubstr(damage.message));
  }
}

TEST(AutoquantPlanDamage, WhatAModelComputedMayBeNaN) {
  Json json = Json::parse(full_plan().to_json());
  json["cosine"] = json["runs"][0]["least_cosine"] = json["layers"][0]["candidates"][1]["error"] = "NaN";
  const AutoquantPlan plan = AutoquantPlan::from_json(json.dump(), "p.json");
  EXPECT_TRUE(std::isnan(plan.cosine));
  EXPECT_TRUE(std::isnan(plan.runs[0].min_cosine));
  EXPECT_TRUE(std::isnan(*plan.layers[0].candidates[1].error));
}

TEST(AutoquantPlanDamage, IsFoundInTheTextItself) {
  const std::string whole = full_plan().to_json();
  EXPECT_THAT(refusal_of(""), HasSubstr("p.json"));
  EXPECT_THAT(refusal_of("[]"), HasSubstr("p.json: expected an object"));
  EXPECT_THAT(refusal_of(whole + "x"), HasSubstr("p.json"));
  EXPECT_THAT(refusal_of(R"({"layers": [], "layers": []})"), HasSubstr("layers"));
  EXPECT_THAT(refusal_of("{\"layers\": [], \"model\": \"\xff\"}"), HasSubstr("p.json"));
  EXPECT_THAT(refusal_of(std::string(100, '[')), HasSubstr("p.json"));
  // A file that was cut off anywhere is not a plan.
  const size_t end = whole.rfind('}');
  for (size_t length = 0; length < end; length += 7) refusal_of(whole.substr(0, length));
}

}  // namespace
}  // namespace halftone
