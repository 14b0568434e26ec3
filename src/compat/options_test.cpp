// The presets have the values of torchao's benchmarks, and options go by name.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "graph/test_support.h"
#include "halftone/compat/baseline.h"

namespace halftone {
namespace {

std::map<std::string, std::string> values_of(const BaselineOptions& options) {
  std::map<std::string, std::string> values;
  for (const BaselineOption& option : list_baseline_options(options)) values[option.name] = option.value;
  return values;
}

TEST(BaselineOptions, PresetsHaveTheValuesOfTheirFiles) {
  EXPECT_THAT(baseline_presets(), testing::ElementsAre("default", "000", "001"));
  EXPECT_EQ(setup_baseline("default"), BaselineOptions{});
  auto expected = values_of({});
  expected["epilogue_fusion"] = "false";
  expected["automatic_dynamic_shapes"] = "false";
  expected["force_parameter_static_shapes"] = "false";
  expected["recompile_limit"] = "10000";
  expected["fuse_int_mm_with_mul"] = "true";
  expected["mixed_mm"] = "true";
  EXPECT_EQ(values_of(setup_baseline("001")), expected);
  expected = values_of({});
  for (const char* on : {"search_kernel_parameters", "search_all_directions", "fuse_int_mm_with_mul",
                         "graph_cache", "readable_kernel_names"})
    expected[on] = "true";
  expected["automatic_dynamic_shapes"] = "false";
  expected["recompile_limit"] = "10000";
  EXPECT_EQ(values_of(setup_baseline("000")), expected);
}

TEST(BaselineOptions, UnknownPresetsNameTheNearest) {
  expect_error(ErrorCode::kInvalidArgument, {"\"defualt\"", "did you mean \"default\"?", "000, 001"},
               [] { setup_baseline("defualt"); });
}

TEST(BaselineOptions, EveryOptionIsSwitchedByItsName) {
  for (const BaselineOption& option : list_baseline_options({})) {
    const std::string other = option.value == "true" ? "false" : option.value == "false" ? "true" : "123";
    BaselineOptions options;
    set_baseline_option(options, option.name + "=" + other);
    auto expected = values_of({});
    expected[option.name] = other;
    EXPECT_EQ(values_of(options), expected) << "only " << option.name << " changes";
    set_baseline_option(options, option.name + "=" + option.value);
    EXPECT_EQ(options, BaselineOptions{});
  }
  BaselineOptions options;
  for (const char* text : {"graph_cache=on", "graph_cache=yes", "graph_cache=1"}) {
    options.graph_cache = false;
    set_baseline_option(options, text);
    EXPECT_TRUE(options.graph_cache) << text;
  }
}

TEST(BaselineOptions, RefusesWhatIsNoAssignment) {
  const auto set = [](const std::string& text) {
    return [text] {
      BaselineOptions options;
      set_baseline_option(options, text);
    };
  };
  expect_error(ErrorCode::kInvalidArgument, {"\"epilog_fusion\"", "did you mean \"epilogue_fusion\"?"},
               set("epilog_fusion=true"));
  expect_error(ErrorCode::kInvalidArgument, {"mixed_mm", "\"maybe\"", "neither true nor false"},
               set("mixed_mm=maybe"));
  for (const char* value : {"-1", "many", "", "12x", "99999999999999999999"})
    expect_error(ErrorCode::kInvalidArgument, {"recompile_limit", "no integer from 0 on"},
                 set(std::string("recompile_limit=") + value));
  expect_error(ErrorCode::kInvalidArgument, {"graph_cache", "give a value"}, set("graph_cache"));
  expect_error(ErrorCode::kInvalidArgument, {"no baseline option \"\""}, set("=true"));
}

TEST(BaselineOptions, AreDescribedInATableOfAHundredColumns) {
  const std::string table = describe_baseline(setup_baseline("001"));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 110u) << line;
  EXPECT_THAT(table, testing::ContainsRegex("epilogue_fusion +false"));
  EXPECT_THAT(table, testing::ContainsRegex("recompile_limit +10000"));
}

/// "| `a` | b |" as {"a", "b"}.
std::vector<std::string> table_cells(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  std::string cell;
  std::getline(stream, cell, '|');
  while (std::getline(stream, cell, '|')) {
    std::erase(cell, '`');
    const size_t begin = cell.find_first_not_of(' '), end = cell.find_last_not_of(' ');
    cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
  }
  return cells;
}

TEST(BaselineDocs, ShowTheValuesOfEachPreset) {
  std::ifstream file(BASELINE_DOCS);
  ASSERT_TRUE(file) << BASELINE_DOCS;
  std::vector<std::string> header;
  std::map<std::string, std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    const auto cells = table_cells(line);
    if (cells.empty()) continue;
    if (cells[0] == "option") header = cells;
    rows[cells[0]] = cells;
  }
  for (const std::string& preset : baseline_presets()) {
    const auto column = std::find(header.begin(), header.end(), preset);
    ASSERT_NE(column, header.end()) << preset;
    for (const BaselineOption& option : list_baseline_options(setup_baseline(preset))) {
      ASSERT_TRUE(rows.contains(option.name)) << option.name;
      const auto& cells = rows[option.name];
      ASSERT_EQ(cells.size(), header.size()) << option.name;
      const std::string said = cells[static_cast<size_t>(column - header.begin())];
      const std::string value = option.value == "true"    ? "on"
                                : option.value == "false" ? "off"
                                                          : option.value;
      EXPECT_EQ(said, value) << option.name << " in " << preset;
    }
  }
}

}  // namespace
}  // namespace halftone
