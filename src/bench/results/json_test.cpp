#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "bench/results/test_rows.h"

namespace halftone {
namespace {

using nlohmann::json;
using testing::HasSubstr;

BenchResults full_results() {
  BenchResults results{
      "Night run",
      {"Zen 3", "avx2", 2, "Linux", "2026-11-16T00:00:00Z", {{"halftone", "0.2.0"}, {"torch", "2.13.0"}}},
      {}};
  BenchRow row = full_row();
  row.layers = {{"blocks.0.up", "linear", "int8dq", 0.5, 1.5, 1e-3, "fastest"},
                {"head", "linear", "fp32", {}, {}, {}, "not measured"}};
  row.plan = {{"blocks.0.up",
               "int8dq",
               "fastest",
               {{"fp32", 3.0, 0.0, ""}, {"int4wo", 1.0, 0.2, "error above the bound"}}}};
  results.rows = {row, full_row("decoder")};
  results.rows[1].accuracy = "OOM";
  results.rows[1].speedup = std::nullopt;
  return results;
}

/// The message for the document after `edit`.
template <typename Edit>
std::string message_after(Edit edit) {
  json document = json::parse(to_json(full_results()));
  edit(document);
  return error_of([&] { bench_results_from_json(document.dump(), "r.json"); });
}

TEST(BenchJson, ComesBack) {
  const ScratchFolder folder;
  write_bench_json(folder.file("r.json"), full_results());
  EXPECT_EQ(read_bench_json(folder.file("r.json")), full_results());
  EXPECT_EQ(to_json(full_results()), to_json(read_bench_json(folder.file("r.json"))));
}

TEST(BenchJson, KeepsWhatJsonHasNoNumberFor) {
  BenchResults results = full_results();
  results.rows[0].compression_ratio = std::numeric_limits<double>::infinity();
  results.rows[0].cosine = std::nan("");
  const BenchResults back = bench_results_from_json(to_json(results), "r.json");
  EXPECT_EQ(back.rows[0].compression_ratio, results.rows[0].compression_ratio);
  EXPECT_TRUE(std::isnan(*back.rows[0].cosine));
}

TEST(BenchJson, LittleIsNeeded) {
  const BenchResults results = bench_results_from_json(
      R"({"format": "halftone-bench", "version": 1, "rows": [{"name": "a"}]})", "r.json");
  EXPECT_EQ(results.rows.at(0).scheme, "noquant");
  EXPECT_FALSE(results.rows.at(0).speedup);
}

TEST(BenchJson, RefusesWithThePlace) {
  EXPECT_THAT(message_after([](json& d) { d["rows"][0]["speedpu"] = 1; }),
              HasSubstr("r.json.rows[0]: unknown key \"speedpu\" (did you mean \"speedup\"?)"));
  EXPECT_THAT(message_after([](json& d) { d["extra"] = 1; }), HasSubstr("r.json: unknown key \"extra\""));
  EXPECT_THAT(message_after([](json& d) { d["rows"][0]["layers"][1]["x"] = 1; }),
              HasSubstr("rows[0].layers[1]: unknown key \"x\""));
  EXPECT_THAT(message_after([](json& d) { d["rows"][0]["layers"][0]["share"] = 2; }),
              HasSubstr("rows[0].layers[0].share: 2 is more than"));
  EXPECT_THAT(message_after([](json& d) { d["rows"][0]["plan"][0]["candidates"][1]["ms"] = "slow"; }),
              HasSubstr("rows[0].plan[0].candidates[1].ms: expected a number"));
  EXPECT_THAT(message_after([](json& d) { d["rows"][1].erase("name"); }),
              HasSubstr("rows[1]: key \"name\" is missing"));
  EXPECT_THAT(message_after([](json& d) { d["rows"][1]["bytes"] = 1.5; }),
              HasSubstr("rows[1].bytes: expected an integer"));
  EXPECT_THAT(message_after([](json& d) { d["rows"][1]["accuracy"] = "pas"; }),
              HasSubstr("rows[1].accuracy: unknown word \"pas\""));
  EXPECT_THAT(message_after([](json& d) { d["rows"] = 3; }), HasSubstr("r.json.rows: expected an array"));
  EXPECT_THAT(message_after([](json& d) { d.erase("rows"); }), HasSubstr("key \"rows\" is missing"));
  EXPECT_THAT(message_after([](json& d) { d["version"] = 2; }),
              HasSubstr("r.json.version: version 2 is not known"));
  EXPECT_THAT(message_after([](json& d) { d["format"] = "x"; }), HasSubstr("r.json.format"));
  EXPECT_THAT(message_after([](json& d) { d["machine"]["versions"]["torch"] = 2; }),
              HasSubstr("machine.versions.torch: expected a string"));
  EXPECT_THAT(message_after([](json& d) { d["means"][0]["speedup"] = 9; }),
              HasSubstr("r.json.means: these are not the rows' geometric means"));
  EXPECT_EQ(message_after([](json& d) { d.erase("means"); }), "no error");
}

TEST(GeometricMeans, LeaveOutWhatDoesNotCount) {
  std::vector<BenchRow> rows(5, full_row());
  rows[0].speedup = 2;
  rows[1].speedup = 8;
  rows[1].compression_ratio = std::nullopt;
  rows[2].speedup = 100;
  rows[2].accuracy = "fail_accuracy";
  rows[3].speedup = std::nullopt;
  rows[4].speedup = 3;
  rows[4].scheme = "autoquant";
  const std::vector<BenchMean> means = geometric_means(rows);
  ASSERT_EQ(means.size(), 2U);
  EXPECT_EQ(means[0].scheme, "autoquant");
  EXPECT_DOUBLE_EQ(*means[0].speedup, 3);
  EXPECT_DOUBLE_EQ(*means[1].speedup, 4);
  EXPECT_DOUBLE_EQ(*means[1].compression_ratio, 1.5);
  EXPECT_EQ(means[1].rows, 2);
  EXPECT_EQ(means[1].left_out, 2);
}

TEST(GeometricMeans, OfNothingIsNothing) {
  std::vector<BenchRow> rows = {full_row()};
  rows[0].speedup = 0;
  EXPECT_FALSE(geometric_means(rows).at(0).speedup);
  EXPECT_TRUE(geometric_means({}).empty());
}

}  // namespace
}  // namespace halftone
