// Results as JSON.
#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "archive/bytes/atomic_file.h"
#include "archive/bytes/text_file.h"
#include "base/errors.h"
#include "base/nearest.h"
#include "bench/results/fields.h"
#include "bench/results/text.h"
#include "halftone/bench/results.h"

namespace halftone {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "halftone-bench";
constexpr int64_t kVersion = 1;

/// What JSON has no word for is a string, as torch writes it and JsonCursor::get_double() reads it.
Json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

template <typename T>
Json plain_members(const T& object) {
  Json json = Json::object();
  for (const Field<T>& field : fields_of<T>()) {
    const auto put = [&](const auto& value) {
      using Value = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<Value, std::string>) {
        json[std::string(field.name)] = utf8_text(value);
      } else if constexpr (std::is_same_v<Value, int64_t>) {
        json[std::string(field.name)] = value;
      } else if constexpr (std::is_same_v<Value, std::optional<int64_t>>) {
        if (value) json[std::string(field.name)] = *value;
      } else {
        if (value) json[std::string(field.name)] = number(*value);
      }
    };
    std::visit([&](auto member) { put(object.*member); }, field.member);
  }
  return json;
}

/// Sets the plain members; other keys than theirs and `more` are refused.
template <typename T>
void read_members(const JsonCursor& cursor, T& object, std::vector<std::string> more = {}) {
  std::vector<std::string> known = std::move(more);
  for (const Field<T>& field : fields_of<T>()) known.emplace_back(field.name);
  for (const std::string& key : cursor.keys()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    cursor.fail_here(fmt::format("unknown key \"{}\"{}", terminal_text(key, 60), did_you_mean(key, known)));
  }
  for (const Field<T>& field : fields_of<T>()) {
    if (!cursor.has(field.name)) {
      if (field.required) cursor.at(field.name);  // says that it is missing
      continue;
    }
    const JsonCursor place = cursor.at(field.name);
    const auto set = [&](auto& value) {
      using Value = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<Value, std::string>) {
        value = place.get_string();
      } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
        value = place.get_double();
      } else {
        value = place.get_int();
      }
    };
    std::visit([&](auto member) { set(object.*member); }, field.member);
    const std::string problem = problem_of(object, field);
    if (!problem.empty()) place.fail_here(problem);
  }
}

template <typename T, typename Read>
std::vector<T> read_list(const JsonCursor& parent, std::string_view key, Read read) {
  std::vector<T> list;
  if (!parent.has(key)) return list;
  const JsonCursor cursor = parent.at(key);
  if (!cursor.raw().is_array()) cursor.fail_here("expected an array");
  for (size_t i = 0; i < cursor.size(); ++i) read(cursor.at(i), list.emplace_back());
  return list;
}

Json choice_json(const BenchChoice& choice) {
  Json json = plain_members(choice);
  Json& candidates = json["candidates"] = Json::array();
  for (const BenchCandidate& candidate : choice.candidates) candidates.push_back(plain_members(candidate));
  return json;
}

Json row_json(const BenchRow& row) {
  check_writable(row);
  Json json = plain_members(row);
  if (!row.layers.empty()) {
    for (const BenchLayer& layer : row.layers) json["layers"].push_back(plain_members(layer));
  }
  for (const BenchChoice& choice : row.plan) json["plan"].push_back(choice_json(choice));
  return json;
}

void read_choice(const JsonCursor& cursor, BenchChoice& choice) {
  read_members(cursor, choice, {"candidates"});
  choice.candidates = read_list<BenchCandidate>(
      cursor, "candidates", [](const JsonCursor& at, BenchCandidate& value) { read_members(at, value); });
}

void read_row(const JsonCursor& cursor, BenchRow& row) {
  read_members(cursor, row, {"layers", "plan"});
  row.layers = read_list<BenchLayer>(
      cursor, "layers", [](const JsonCursor& at, BenchLayer& value) { read_members(at, value); });
  row.plan = read_list<BenchChoice>(cursor, "plan", read_choice);
}

BenchMachine read_machine(const JsonCursor& cursor) {
  BenchMachine machine;
  read_members(cursor, machine, {"versions"});
  if (!cursor.has("versions")) return machine;
  const JsonCursor versions = cursor.at("versions");
  for (const std::string& key : versions.keys()) machine.versions[key] = versions.at(key).get_string();
  return machine;
}

bool near(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return std::abs(*a - *b) <= 1e-9 * std::abs(*b);
}

/// Means are there for other programs. Rows that were edited without them would be shown with wrong ones.
void check_means(const JsonCursor& root, const std::vector<BenchRow>& rows) {
  if (!root.has("means")) return;
  const auto stored = read_list<BenchMean>(
      root, "means", [](const JsonCursor& at, BenchMean& value) { read_members(at, value); });
  const std::vector<BenchMean> wanted = geometric_means(rows);
  const bool same = std::ranges::equal(stored, wanted, [](const BenchMean& a, const BenchMean& b) {
    return a.mode == b.mode && a.scheme == b.scheme && a.backend == b.backend && a.rows == b.rows &&
           a.left_out == b.left_out && near(a.speedup, b.speedup) &&
           near(a.compression_ratio, b.compression_ratio);
  });
  if (!same)
    root.at("means").fail_here(
        "these are not the rows' geometric means; remove the key to have them computed");
}

}  // namespace

std::string to_json(const BenchResults& results) {
  Json json = {{"format", kFormat}, {"version", kVersion}, {"title", utf8_text(results.title)}};
  Json& machine = json["machine"] = plain_members(results.machine);
  Json& versions = machine["versions"] = Json::object();
  for (const auto& [name, version] : results.machine.versions) versions[utf8_text(name)] = utf8_text(version);
  Json& means = json["means"] = Json::array();
  for (const BenchMean& mean : geometric_means(results.rows)) means.push_back(plain_members(mean));
  Json& rows = json["rows"] = Json::array();
  for (const BenchRow& row : results.rows) rows.push_back(row_json(row));
  return json.dump(1) + "\n";
}

BenchResults bench_results_from_json(std::string_view text, std::string_view file) {
  const nlohmann::json document = parse_json(text, file);
  const JsonCursor root(document, std::string(file));
  const std::vector<std::string> known = {"format", "version", "title", "machine", "means", "rows"};
  for (const std::string& key : root.keys()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    root.fail_here(fmt::format("unknown key \"{}\"{}", terminal_text(key, 60), did_you_mean(key, known)));
  }
  if (root.at("format").get_string() != kFormat) root.at("format").fail_here("is not \"halftone-bench\"");
  const int64_t version = root.at("version").get_int();
  if (version != kVersion)
    root.at("version").fail_here(fmt::format("version {} is not known, only {}", version, kVersion));
  BenchResults results;
  if (root.has("title")) results.title = root.at("title").get_string();
  if (root.has("machine")) results.machine = read_machine(root.at("machine"));
  root.at("rows");
  results.rows = read_list<BenchRow>(root, "rows", read_row);
  check_means(root, results.rows);
  return results;
}

BenchResults read_bench_json(const std::string& path) {
  return bench_results_from_json(read_text_file(path), path);
}

void write_bench_json(const std::string& path, const BenchResults& results) {
  write_text_file(path, to_json(results));
}

}  // namespace halftone
