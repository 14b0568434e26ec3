#include "tune/report/cache.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "archive/bytes/atomic_file.h"
#include "archive/bytes/text_file.h"
#include "base/errors.h"
#include "base/json.h"
#include "base/log.h"
#include "base/sha256.h"
#include "halftone/base/version.h"
#include "halftone/cli/kernels.h"
#include "halftone/cli/message.h"
#include "tune/measure/machine.h"
#include "tune/report/report_json.h"

namespace halftone {
namespace {

constexpr const char* kFormat = "halftone-tuning";
constexpr size_t kLongestCache = size_t{16} << 20;
// How times are measured and compared: measurements by another method are not mixed with these.
constexpr const char* kMethod = "ratios to eager, undisturbed rounds";

bool is_measurement(const std::filesystem::path& path) {
  return path.filename().string().starts_with("tune-") && path.extension() == ".json";
}

std::vector<std::filesystem::path> measurements_in(const std::string& cache_dir) {
  std::vector<std::filesystem::path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(cache_dir, none)) {
    if (is_measurement(entry.path())) files.push_back(entry.path());
  }
  return files;
}

std::string text_of(const std::filesystem::path& path) {
  return read_text_file(path.string(), kLongestCache);
}

std::filesystem::path file_of(const std::string& cache_dir, const std::string& hash) {
  return std::filesystem::path(cache_dir) / ("tune-" + hash.substr(0, 32) + ".json");
}

/// Throws kCorruptFile for what is no measurement with this key.
TuneReport read_measurements(const std::string& text, const std::string& name, const std::string& hash) {
  const nlohmann::json parsed = parse_json(text, name);
  const JsonCursor root(parsed, name);
  if (root.at("format").get_string() != kFormat) root.at("format").fail_here("no measurements of Halftone");
  if (root.at("key").get_string() != hash) root.at("key").fail_here("of another model, machine or version");
  const std::string report = root.at("report").get_string();
  if (to_hex(sha256(std::as_bytes(std::span(report)))) != root.at("sha256").get_string())
    root.at("report").fail_here("its checksum is wrong");
  return TuneReport::from_json(report);
}

/// The rows must be those of the candidates, in their order: the choice is made among them.
void require_rows_of(const TuneReport& report, const std::vector<std::string>& candidates,
                     const std::string& name) {
  bool fits = report.candidates.size() == candidates.size();
  for (size_t i = 0; fits && i < candidates.size(); ++i) {
    const CandidateReport& row = report.candidates[i];
    fits = candidates[i] == row.name + " " + row.key;
  }
  if (!fits) fail(ErrorCode::kCorruptFile, "{}: its candidates are others", name);
}

TuneCacheEntry entry_of(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  const nlohmann::json parsed = parse_json(text_of(path), name);
  const JsonCursor root(parsed, name);
  const TuneReport report = read_measurements(text_of(path), name, root.at("key").get_string());
  TuneCacheEntry entry{name, report.measured_at, report.model};
  for (const SampleShape& shape : report.shapes)
    entry.shapes += (entry.shapes.empty() ? "" : ", ") + shape.label();
  entry.machine = fmt::format("{}, {}, {}, halftone {}", report.cpu, report.isa,
                              counted(report.threads, "thread"), report.version);
  entry.candidates = report.candidates.size();
  entry.rounds = report.rounds;
  entry.disturbed = report.disturbed;
  return entry;
}

}  // namespace

std::vector<TuneCacheEntry> tune_cache(const std::string& cache_dir) {
  std::vector<TuneCacheEntry> entries;
  for (const std::filesystem::path& path : measurements_in(cache_dir)) {
    try {
      entries.push_back(entry_of(path));
    } catch (const Error& error) {
      log(LogLevel::kWarning, "cache of tunings: {}", error.what());
    }
  }
  std::sort(entries.begin(), entries.end(), [](const TuneCacheEntry& a, const TuneCacheEntry& b) {
    return std::tie(a.measured_at, a.file) < std::tie(b.measured_at, b.file);
  });
  return entries;
}

size_t clear_tune_cache(const std::string& cache_dir) {
  size_t removed = 0;
  for (const std::filesystem::path& path : measurements_in(cache_dir)) {
    std::error_code error;
    if (!std::filesystem::remove(path, error))
      fail(ErrorCode::kIo, "{}: cannot be removed: {}", path.string(), error.message());
    ++removed;
  }
  return removed;
}

std::string CacheKey::hash() const {
  nlohmann::ordered_json json = {{"model", model_hash},
                                 {"shapes", shapes_json(shapes)},
                                 {"candidates", candidates},
                                 {"least_cosine", min_cosine},
                                 {"metric", metric},
                                 {"method", kMethod},
                                 {"watched", machine_is_watched()},
                                 {"cpu", cpu_name()},
                                 {"isa", active_instruction_set()},
                                 {"threads", at::get_num_threads()},
                                 {"halftone", version()},
                                 {"torch", torch_version()}};
  if (stop_at_first) json["first"] = beat_fp32;
  const std::string text = dump_json(json, -1);
  return to_hex(sha256(std::as_bytes(std::span(text))));
}

std::optional<TuneReport> load_measurements(const std::string& cache_dir, const CacheKey& key) {
  if (cache_dir.empty()) return std::nullopt;
  const std::string hash = key.hash();
  const std::filesystem::path path = file_of(cache_dir, hash);
  try {
    TuneReport report =
        read_measurements(read_text_file(path.string(), kLongestCache), path.filename().string(), hash);
    require_rows_of(report, key.candidates, path.filename().string());
    return report;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotFound) return std::nullopt;
    log(LogLevel::kWarning, "cache of tunings: {}; measured anew", error.what());
    return std::nullopt;
  }
}

void store_measurements(const std::string& cache_dir, const CacheKey& key, const TuneReport& report) {
  if (cache_dir.empty()) return;
  try {
    std::filesystem::create_directories(cache_dir);
    const std::string hash = key.hash();
    // As text, so that its checksum is of the very bytes that are read again.
    const std::string text = report.to_json();
    const nlohmann::ordered_json json = {{"format", kFormat},
                                         {"key", hash},
                                         {"sha256", to_hex(sha256(std::as_bytes(std::span(text))))},
                                         {"report", text}};
    AtomicFile file(file_of(cache_dir, hash).string());
    file.write(dump_json(json));
    file.commit();
  } catch (const std::exception& error) {
    log(LogLevel::kWarning, "cache of tunings: {}; nothing is kept", error.what());
  }
}

}  // namespace halftone
