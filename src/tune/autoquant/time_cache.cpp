#include "tune/autoquant/time_cache.h"

#include <ATen/Parallel.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <tuple>

#include "archive/bytes/atomic_file.h"
#include "archive/bytes/text_file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/sha256.h"
#include "halftone/base/version.h"
#include "halftone/cli/kernels.h"
#include "halftone/tune/measure.h"
#include "tune/measure/machine.h"
#include "tune/report/report_json.h"

namespace halftone {
namespace aq {
namespace {

constexpr const char* kTimesFormat = "halftone-autoquant-times";
constexpr const char* kPlanFormat = "halftone-autoquant-plan-cache";
constexpr size_t kLongestCache = size_t{64} << 20;
constexpr double kLongestTime = 1e9;  // milliseconds
constexpr const char* kTimesFile = "autoquant-times.json";

using TimeKey = std::tuple<std::string, std::string, std::string>;  // machine, problem, scheme
using TimeMap = std::map<TimeKey, double>;

struct ProcessMemory {
  std::mutex mutex;
  TimeMap times;
  std::map<std::string, std::string> plans;
};

ProcessMemory& process_memory() {
  static ProcessMemory memory;
  return memory;
}

std::filesystem::path times_path(const std::string& folder) {
  return std::filesystem::path(folder) / kTimesFile;
}
std::filesystem::path plan_path(const std::string& folder, const std::string& hash) {
  return std::filesystem::path(folder) / ("autoquant-plan-" + hash.substr(0, 32) + ".json");
}

std::optional<std::string> text_of_file(const std::filesystem::path& path) {
  try {
    return read_text_file(path.string(), kLongestCache);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound)
      log(LogLevel::kWarning, "autoquant's cache: {}; measured anew", error.what());
    return std::nullopt;
  }
}

TimeMap parse_times(const std::string& text, const std::string& name) {
  const nlohmann::json parsed = parse_json(text, name);
  const JsonCursor root(parsed, name);
  if (root.at("format").get_string() != kTimesFormat) root.at("format").fail_here("no times of autoquant");
  const JsonCursor list = root.at("times");
  TimeMap times;
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonCursor entry = list.at(i);
    const double ms = entry.at("milliseconds").get_double();
    if (!(ms > 0 && ms < kLongestTime)) entry.at("milliseconds").fail_here("no time");
    times[{entry.at("machine").get_string(), entry.at("problem").get_string(),
           entry.at("scheme").get_string()}] = ms;
  }
  return times;
}

TimeMap read_times(const std::string& folder) {
  if (folder.empty()) return {};
  const auto text = text_of_file(times_path(folder));
  if (!text) return {};
  try {
    return parse_times(*text, kTimesFile);
  } catch (const Error& error) {
    log(LogLevel::kWarning, "autoquant's cache: {}; measured anew", error.what());
    return {};
  }
}

void write_file(const std::string& folder, const std::filesystem::path& path, const std::string& text) {
  try {
    std::filesystem::create_directories(folder);
    AtomicFile file(path.string());
    file.write(text);
    file.commit();
  } catch (const std::exception& error) {
    log(LogLevel::kWarning, "autoquant's cache: {}; nothing is kept", error.what());
  }
}

std::string sha_of(const std::string& text) {
  return to_hex(sha256(std::as_bytes(std::span(text))));
}

}  // namespace

std::string machine_text() {
  return fmt::format("{}, {}, {} threads, halftone {}, torch {}, {}", cpu_name(), active_instruction_set(),
                     at::get_num_threads(), version(), torch_version(),
                     machine_is_watched() ? "undisturbed rounds" : "not watched");
}

TimeCache::TimeCache(std::string folder, bool read)
    : folder_(std::move(folder)), read_(read), machine_(machine_text()) {
  if (!read_) return;
  const TimeMap stored = read_times(folder_);
  ProcessMemory& memory = process_memory();
  const std::lock_guard lock(memory.mutex);
  memory.times.insert(stored.begin(), stored.end());
}

std::optional<double> TimeCache::find(const std::string& problem, const std::string& scheme) const {
  // What this planning measured itself is always known.
  for (const AutoquantCacheEntry& entry : added_) {
    if (entry.problem == problem && entry.scheme == scheme) return entry.milliseconds;
  }
  if (!read_) return std::nullopt;
  ProcessMemory& memory = process_memory();
  const std::lock_guard lock(memory.mutex);
  const auto found = memory.times.find({machine_, problem, scheme});
  return found != memory.times.end() ? std::optional(found->second) : std::nullopt;
}

void TimeCache::add(const std::string& problem, const std::string& scheme, double milliseconds) {
  added_.push_back({problem, scheme, machine_, milliseconds});
  ProcessMemory& memory = process_memory();
  const std::lock_guard lock(memory.mutex);
  memory.times[{machine_, problem, scheme}] = milliseconds;
}

void TimeCache::save() const {
  if (folder_.empty() || added_.empty()) return;
  TimeMap times = read_times(folder_);
  for (const AutoquantCacheEntry& entry : added_)
    times[{entry.machine, entry.problem, entry.scheme}] = entry.milliseconds;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [key, ms] : times) {
    list.push_back({{"machine", std::get<0>(key)},
                    {"problem", std::get<1>(key)},
                    {"scheme", std::get<2>(key)},
                    {"milliseconds", ms}});
  }
  write_file(folder_, times_path(folder_),
             dump_json(nlohmann::ordered_json{{"format", kTimesFormat}, {"times", std::move(list)}}));
}

std::optional<std::string> find_plan(const std::string& folder, const std::string& hash) {
  const std::filesystem::path path = plan_path(folder, hash);
  std::optional<std::string> known;
  {
    ProcessMemory& memory = process_memory();
    const std::lock_guard lock(memory.mutex);
    if (const auto found = memory.plans.find(hash); found != memory.plans.end()) known = found->second;
  }
  if (known) {
    if (!folder.empty() && !std::filesystem::exists(path)) store_plan(folder, hash, *known);
    return known;
  }
  if (folder.empty()) return std::nullopt;
  const auto text = text_of_file(path);
  if (!text) return std::nullopt;
  try {
    const std::string name = path.filename().string();
    const nlohmann::json parsed = parse_json(*text, name);
    const JsonCursor root(parsed, name);
    if (root.at("format").get_string() != kPlanFormat) root.at("format").fail_here("no plan of autoquant");
    if (root.at("key").get_string() != hash) root.at("key").fail_here("of another model, machine or version");
    std::string plan = root.at("plan").get_string();
    if (sha_of(plan) != root.at("sha256").get_string()) root.at("plan").fail_here("its checksum is wrong");
    return plan;
  } catch (const Error& error) {
    log(LogLevel::kWarning, "autoquant's cache: {}; planned anew", error.what());
    return std::nullopt;
  }
}

void store_plan(const std::string& folder, const std::string& hash, const std::string& json) {
  {
    ProcessMemory& memory = process_memory();
    const std::lock_guard lock(memory.mutex);
    memory.plans[hash] = json;
  }
  if (folder.empty()) return;
  // As text, so that its checksum is of the very bytes that are read again.
  const nlohmann::ordered_json file = {
      {"format", kPlanFormat}, {"key", hash}, {"sha256", sha_of(json)}, {"plan", json}};
  write_file(folder, plan_path(folder, hash), dump_json(file));
}

}  // namespace aq

std::vector<AutoquantCacheEntry> autoquant_cache(const std::string& cache_dir) {
  aq::TimeMap times = aq::read_times(cache_dir);
  {
    aq::ProcessMemory& memory = aq::process_memory();
    const std::lock_guard lock(memory.mutex);
    times.insert(memory.times.begin(), memory.times.end());
  }
  std::vector<AutoquantCacheEntry> entries;
  for (const auto& [key, ms] : times)
    entries.push_back({std::get<1>(key), std::get<2>(key), std::get<0>(key), ms});
  return entries;
}

size_t clear_autoquant_cache(const std::string& cache_dir) {
  const size_t count = autoquant_cache(cache_dir).size();
  aq::ProcessMemory& memory = aq::process_memory();
  const std::lock_guard lock(memory.mutex);
  memory.times.clear();
  memory.plans.clear();
  if (cache_dir.empty()) return count;
  std::error_code ignored;
  std::filesystem::remove(aq::times_path(cache_dir), ignored);
  for (const auto& entry : std::filesystem::directory_iterator(cache_dir, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("autoquant-plan-") && name.ends_with(".json"))
      std::filesystem::remove(entry.path(), ignored);
  }
  return count;
}

}  // namespace halftone
