// Plans from files that were written by anybody.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "archive/bytes/terminal_text.h"
#include "base/errors.h"
#include "base/json.h"
#include "base/nearest.h"
#include "halftone/tune/autoquant_plan.h"
#include "tune/autoquant_plan/plan_format.h"

namespace halftone {
namespace {

constexpr JsonLimits kPlanLimits{.max_depth = 16, .max_bytes = size_t{64} << 20, .max_values = 4'000'000};

/// One object: its members are asked for by key, and finish() refuses the remaining ones.
class PlanReader {
 public:
  explicit PlanReader(JsonCursor place) : place_(std::move(place)) {
    if (!place_.raw().is_object()) place_.fail_here("expected an object");
  }

  const JsonCursor& place() const { return place_; }
  JsonCursor required(const char* key) {
    known_.emplace_back(key);
    return place_.at(key);
  }
  /// Nothing if it is left out or null.
  std::optional<JsonCursor> optional(const char* key) {
    known_.emplace_back(key);
    if (!place_.has(key) || place_.at(key).is_null()) return std::nullopt;
    return place_.at(key);
  }

  void read(const char* key, std::string& value) {
    if (const auto found = optional(key)) value = found->get_string();
  }
  void read(const char* key, bool& value) {
    if (const auto found = optional(key)) value = found->get_bool();
  }
  void read(const char* key, double& value, double least) {
    if (const auto found = optional(key)) value = number(*found, least);
  }
  /// A time or a ratio of times: measured, so a number.
  template <typename T>
  void read_time(const char* key, T& value) {
    const auto found = optional(key);
    if (!found) return;
    value = number(*found, 0);
    if (!std::isfinite(found->get_double()))
      found->fail_here(fmt::format("expected a time, found {}", found->raw().dump()));
  }
  void read(const char* key, std::optional<double>& value, double least) {
    if (const auto found = optional(key)) value = number(*found, least);
  }
  void read(const char* key, int64_t& value, int64_t most = std::numeric_limits<int64_t>::max()) {
    if (const auto found = optional(key)) value = count(*found, most);
  }
  template <typename T, typename Read>
  void read_list(const char* key, std::vector<T>& list, Read read) {
    const auto found = optional(key);
    if (!found) return;
    if (!found->raw().is_array()) found->fail_here("expected an array");
    for (size_t i = 0; i < found->size(); ++i) list.push_back(read(found->at(i)));
  }
  void read_texts(const char* key, std::vector<std::string>& list) {
    read_list(key, list, [](const JsonCursor& each) { return each.get_string(); });
  }

  void finish() const {
    for (const std::string& key : place_.keys()) {
      if (std::ranges::find(known_, key) != known_.end()) continue;
      place_.fail_here(
          fmt::format("unknown key \"{}\"{}", terminal_text(key, 60), did_you_mean(key, known_)));
    }
  }

  static int64_t count(const JsonCursor& place, int64_t most = std::numeric_limits<int64_t>::max()) {
    const int64_t value = place.get_int();
    if (value < 0) place.fail_here(fmt::format("expected 0 or more, found {}", value));
    if (value > most) place.fail_here(fmt::format("expected at most {}, found {}", most, value));
    return value;
  }

 private:
  /// NaN is let through: a model may compute it, so errors and cosines may be it.
  static double number(const JsonCursor& place, double least) {
    const double value = place.get_double();
    if (value < least) place.fail_here(fmt::format("expected {} or more, found {}", least, value));
    return value;
  }

  JsonCursor place_;
  std::vector<std::string> known_;
};

std::string read_scheme(const JsonCursor& place) {
  const std::string name = place.get_string();
  try {
    return autoquant_scheme(name).name;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnsupported) place.fail_here(error.what());  // known, and no config
    std::vector<std::string> known;
    for (const AutoquantScheme& scheme : autoquant_schemes()) known.push_back(scheme.name);
    place.fail_here(fmt::format("unknown scheme \"{}\"{}; known: {}", terminal_text(name, 60),
                                did_you_mean(name, known), fmt::join(known, ", ")));
  }
}

AutoquantCandidate read_candidate(const JsonCursor& place) {
  PlanReader reader(place);
  AutoquantCandidate candidate;
  candidate.scheme = read_scheme(reader.required("scheme"));
  reader.read_time("milliseconds", candidate.milliseconds);
  reader.read("error", candidate.error, -1);  // a cosine may be rounded to a little above 1
  reader.read("note", candidate.note);
  reader.finish();
  return candidate;
}

AutoquantShape read_shape(const JsonCursor& place) {
  PlanReader reader(place);
  AutoquantShape shape;
  reader.read_list("sizes", shape.sizes, [](const JsonCursor& each) { return PlanReader::count(each); });
  reader.read("dtype", shape.dtype);
  reader.read("calls", shape.calls);
  reader.finish();
  return shape;
}

AutoquantLayer read_layer(const JsonCursor& place) {
  PlanReader reader(place);
  AutoquantLayer layer;
  layer.name = reader.required("name").get_string();
  layer.choice = read_scheme(reader.required("choice"));
  reader.read("reason", layer.reason);
  reader.read("kind", layer.kind);
  reader.read("n", layer.n);
  reader.read("k", layer.k);
  reader.read_texts("together", layer.together);
  reader.read_list("shapes", layer.shapes, read_shape);
  reader.read_list("candidates", layer.candidates, read_candidate);
  reader.finish();
  return layer;
}

AutoquantRun read_run(const JsonCursor& place) {
  PlanReader reader(place);
  AutoquantRun run;
  run.name = reader.required("name").get_string();
  reader.read_time("milliseconds", run.milliseconds);
  reader.read_time("relative", run.relative);
  reader.read_time("relative_low", run.relative_low);
  reader.read_time("relative_high", run.relative_high);
  reader.read("rounds", run.rounds);
  reader.read("least_cosine", run.min_cosine, -2);
  reader.read("holds", run.holds);
  reader.read("chosen", run.chosen);
  reader.finish();
  return run;
}

/// Each layer once, by its own entry or beside another.
void check_names(const JsonCursor& layers, const std::vector<AutoquantLayer>& list) {
  std::set<std::string_view> named;
  for (size_t i = 0; i < list.size(); ++i) {
    if (named.insert(list[i].name).second) continue;
    layers.at(i).at("name").fail_here(
        fmt::format("layer \"{}\" stands here twice", terminal_text(list[i].name, 60)));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    std::set<std::string_view> beside{list[i].name};
    for (size_t j = 0; j < list[i].together.size(); ++j) {
      if (beside.insert(list[i].together[j]).second) continue;
      layers.at(i).at("together").at(j).fail_here("is this layer itself, or stands here twice");
    }
  }
}

void check_format(PlanReader& reader) {
  if (const auto format = reader.optional("format"); format && format->get_string() != kPlanFormat)
    format->fail_here(fmt::format("is not \"{}\"", kPlanFormat));
  const auto version = reader.optional("format_version");
  if (!version || version->get_int() == kPlanVersion) return;
  version->fail_here(
      fmt::format("version {} is not known, this Halftone reads {}", version->get_int(), kPlanVersion));
}

}  // namespace

AutoquantPlan AutoquantPlan::from_json(std::string_view json, std::string_view file) {
  const nlohmann::json document = parse_json(json, file, kPlanLimits);
  PlanReader reader(JsonCursor(document, std::string(file)));
  check_format(reader);
  AutoquantPlan plan;
  reader.read("model", plan.model);
  reader.read("model_hash", plan.model_hash);
  reader.read("cpu", plan.cpu);
  reader.read("isa", plan.isa);
  int64_t threads = 0;
  reader.read("threads", threads, std::numeric_limits<int>::max());
  plan.threads = static_cast<int>(threads);
  reader.read("halftone", plan.version);
  reader.read("measured_at", plan.measured_at);
  reader.read_time("seconds", plan.seconds);
  reader.read("least_cosine", plan.min_cosine, -1);
  reader.read("least_layer_cosine", plan.min_layer_cosine, -1);
  reader.read("cosine", plan.cosine, -2);
  reader.read_texts("notes", plan.notes);
  reader.read_list("runs", plan.runs, read_run);
  const JsonCursor layers = reader.required("layers");
  if (!layers.raw().is_array()) layers.fail_here("expected an array");
  reader.read_list("layers", plan.layers, read_layer);
  check_names(layers, plan.layers);
  reader.finish();
  return plan;
}

}  // namespace halftone
