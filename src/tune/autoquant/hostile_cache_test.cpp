// Forged caches and plans: nothing of them is used, and nothing hangs.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>

#include "graph/test_support.h"
#include "tune/autoquant/time_cache.h"
#include "tune/autoquant_plan/test_plans.h"
#include "tune/test_support.h"

namespace halftone::aq {
namespace {

namespace fs = std::filesystem;

struct HostileFile {
  std::string name;
  std::function<void(const fs::path&)> put;
};

HostileFile hostile_text(std::string name, std::string text) {
  return {std::move(name), [text = std::move(text)](const fs::path& path) { std::ofstream(path) << text; }};
}

/// What is not a file that can be read to its end, and texts that fill memory or stack.
std::vector<HostileFile> no_caches() {
  const size_t many = 5'000'000;
  return {
      {"a pipe", [](const fs::path& path) { mkfifo(path.c_str(), 0600); }},
      {"a device", [](const fs::path& path) { fs::create_symlink("/dev/zero", path); }},
      {"a folder", [](const fs::path& path) { fs::create_directory(path); }},
      {"a terabyte",
       [](const fs::path& path) {
         std::ofstream(path) << "{";
         fs::resize_file(path, size_t{1} << 40);
       }},
      hostile_text("nothing", ""),
      hostile_text("no JSON", "{"),
      hostile_text("no UTF-8", "{\"format\": \"\xff\xfe\"}"),
      hostile_text("a list", "[]"),
      hostile_text("deep lists", std::string(many, '[')),
      hostile_text("deep objects",
                   [&] {
                     std::string text;
                     for (size_t i = 0; i < many / 5; ++i) text += "{\"a\":";
                     return text;
                   }()),
      hostile_text("a long name", "{\"" + std::string(50'000'000, 'n') + "\": 1}"),
  };
}

class HostileCache : public ::testing::Test {
 protected:
  HostileCache() { clear_autoquant_cache(); }
  ~HostileCache() override { clear_autoquant_cache(); }
  std::string dir() const { return folder_.path.string(); }
  fs::path times() const { return folder_.path / "autoquant-times.json"; }
  fs::path plan() const { return folder_.path / ("autoquant-plan-" + kHash.substr(0, 32) + ".json"); }

  void expect_no_times(const std::string& what) {
    SCOPED_TRACE(what);
    EXPECT_FALSE(TimeCache(dir(), true).find("p", "s"));
    EXPECT_TRUE(autoquant_cache(dir()).empty());
    fs::remove_all(times());
  }

  const std::string kHash = std::string(64, 'a');
  TestFolder folder_;
};

TEST_F(HostileCache, WhatIsNoFileOfTimesIsMeasuredAnew) {
  for (const HostileFile& file : no_caches()) {
    file.put(times());
    expect_no_times(file.name);
  }
}

TEST_F(HostileCache, TimesThatAreNoneAreMeasuredAnew) {
  const std::string machine = machine_text();
  const auto entry = [&](const std::string& milliseconds) {
    return fmt::format(R"({{"machine": "{}", "problem": "p", "scheme": "s", "milliseconds": {}}})", machine,
                       milliseconds);
  };
  const auto with_times = [](const std::string& times) {
    return fmt::format(R"({{"format": "halftone-autoquant-times", "times": {}}})", times);
  };
  for (const char* time : {"NaN", "-NaN", "Infinity", "1e999", "-1", "0", "-0.0", "1e9", "1e300", "\"1\"",
                           "null", "[1]", "{}", "true", "99999999999999999999999999"}) {
    std::ofstream(times()) << with_times("[" + entry(time) + "]");
    expect_no_times(time);
  }
  for (const char* list : {"7", "null", "\"times\"", "{\"0\": 1}", "[7]", "[null]", "[[]]", "[{}]",
                           R"([{"machine": 1, "problem": "p", "scheme": "s", "milliseconds": 1}])",
                           R"([{"machine": "m", "problem": [], "scheme": "s", "milliseconds": 1}])"}) {
    std::ofstream(times()) << with_times(list);
    expect_no_times(list);
  }
  std::ofstream(times()) << R"({"format": "halftone-autoquant-plan-cache", "times": []})";
  expect_no_times("another format");
  // One wrong entry among good ones: none is taken.
  std::ofstream(times()) << with_times("[" + entry("1.5") + ", " + entry("-1") + "]");
  expect_no_times("one of two");
  std::ofstream(times()) << with_times("[" + entry("1.5") + "]");
  EXPECT_EQ(TimeCache(dir(), true).find("p", "s"), 1.5);
}

TEST_F(HostileCache, WhatWasMeasuredIsKeptInThePlaceOfAHostileFile) {
  for (const HostileFile& file : no_caches()) {
    SCOPED_TRACE(file.name);
    file.put(times());
    // What is not a file is left alone: a line in the log, and nothing is kept.
    const bool is_file = fs::is_regular_file(times());
    TimeCache cache(dir(), true);
    cache.add("p", "s", 2.5);
    cache.save();
    clear_autoquant_cache();
    EXPECT_EQ(TimeCache(dir(), true).find("p", "s"), is_file ? std::optional(2.5) : std::nullopt);
    clear_autoquant_cache();
    fs::remove_all(times());
  }
}

TEST_F(HostileCache, WhatIsNoPlanIsPlannedAnew) {
  for (const HostileFile& file : no_caches()) {
    SCOPED_TRACE(file.name);
    file.put(plan());
    EXPECT_FALSE(find_plan(dir(), kHash));
    fs::remove_all(plan());
  }
  store_plan(dir(), kHash, "{}");
  nlohmann::json stored;
  std::ifstream(plan()) >> stored;
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, nlohmann::json>>{{"format", "halftone-autoquant-times"},
                                                           {"key", std::string(64, 'b')},
                                                           {"key", 7},
                                                           {"sha256", std::string(64, '0')},
                                                           {"sha256", nullptr},
                                                           {"plan", "{ }"},
                                                           {"plan", nlohmann::json::object()}}) {
    SCOPED_TRACE(key);
    clear_autoquant_cache();
    nlohmann::json changed = stored;
    changed[key] = value;
    std::ofstream(plan()) << changed;
    EXPECT_FALSE(find_plan(dir(), kHash));
  }
}

TEST_F(HostileCache, PlansOfUsersAreFilesToo) {
  const fs::path file = folder_.path / "plan.json";
  for (const HostileFile& hostile : no_caches()) {
    SCOPED_TRACE(hostile.name);
    hostile.put(file);
    try {
      read_autoquant_plan(file.string());
      ADD_FAILURE() << "it was read";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("plan.json"));
      EXPECT_LT(std::string_view(error.what()).size(), 5000U);
    }
    fs::remove_all(file);
  }
  const std::string whole = full_plan().to_json();
  const auto pointer = nlohmann::json::json_pointer("/layers/0/candidates/1/milliseconds");
  for (const char* time : {"-1", "\"fast\"", "[]", "true", "{}"}) {
    nlohmann::json changed = nlohmann::json::parse(whole);
    changed[pointer] = nlohmann::json::parse(time);
    std::ofstream(file) << changed;
    message_of(ErrorCode::kCorruptFile, [&] { read_autoquant_plan(file.string()); });
  }
}

}  // namespace
}  // namespace halftone::aq
