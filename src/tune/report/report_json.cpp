#include "tune/report/report_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/errors.h"

namespace halftone {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kFormat = "halftone-tune-report";
constexpr int64_t kVersion = 1;
constexpr Verdict kVerdicts[] = {Verdict::kChosen, Verdict::kValid, Verdict::kDropped, Verdict::kFailed,
                                 Verdict::kNotTried};

/// JSON has no infinity: null stands for it.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

double number_of(const JsonCursor& place) {
  return place.is_null() ? std::numeric_limits<double>::infinity() : place.get_double();
}

template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json times_json(const std::vector<ShapeTime>& times) {
  Json list = Json::array();
  for (const ShapeTime& time : times) {
    list.push_back({{"median_ms", time.median},
                    {"p10_ms", time.p10},
                    {"p90_ms", time.p90},
                    {"low_ms", time.low},
                    {"high_ms", number(time.high)},
                    {"runs", time.runs},
                    {"to_eager", time.to_eager},
                    {"to_eager_low", time.eager_interval.low},
                    {"to_eager_high", number(time.eager_interval.high)},
                    {"to_fp32", time.to_fp32},
                    {"to_fp32_low", time.fp32_interval.low},
                    {"to_fp32_high", number(time.fp32_interval.high)}});
  }
  return list;
}

/// A time or a ratio: finite and not negative.
double amount_of(const JsonCursor& place) {
  const double value = place.get_double();
  if (!(value >= 0 && std::isfinite(value))) place.fail_here("expected a finite number that is not negative");
  return value;
}

/// Reports of 0.2.0 have none.
Interval interval_of(const JsonCursor& entry, const std::string& name) {
  if (!entry.has(name + "_low")) return {};
  return {entry.at(name + "_low").get_double(), number_of(entry.at(name + "_high"))};
}

std::vector<ShapeTime> times_of(const JsonCursor& place) {
  std::vector<ShapeTime> times;
  for (size_t i = 0; i < place.size(); ++i) {
    const JsonCursor entry = place.at(i);
    ShapeTime time;
    time.median = amount_of(entry.at("median_ms"));
    time.p10 = amount_of(entry.at("p10_ms"));
    time.p90 = amount_of(entry.at("p90_ms"));
    time.low = amount_of(entry.at("low_ms"));
    time.high = number_of(entry.at("high_ms"));
    time.runs = static_cast<int>(entry.at("runs").get_int());
    time.to_eager = amount_of(entry.at("to_eager"));
    time.to_fp32 = amount_of(entry.at("to_fp32"));
    time.eager_interval = interval_of(entry, "to_eager");
    time.fp32_interval = interval_of(entry, "to_fp32");
    times.push_back(time);
  }
  return times;
}

Json accuracy_json(const std::optional<Accuracy>& accuracy) {
  if (!accuracy) return nullptr;
  Json json = {{"least_cosine", number(accuracy->min_cosine)},
               {"mean_cosine", number(accuracy->mean_cosine)},
               {"relative_error", number(accuracy->relative_error)},
               {"nans", accuracy->nans}};
  if (accuracy->metric) json["metric"] = number(*accuracy->metric);
  return json;
}

std::optional<Accuracy> accuracy_of(const JsonCursor& place) {
  if (place.is_null()) return std::nullopt;
  // A cosine or metric that JSON could not say was not a number: it must not come back as a good one.
  const auto or_nan = [](const JsonCursor& value) {
    return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get_double();
  };
  Accuracy accuracy;
  accuracy.min_cosine = or_nan(place.at("least_cosine"));
  accuracy.mean_cosine = or_nan(place.at("mean_cosine"));
  accuracy.relative_error = number_of(place.at("relative_error"));
  accuracy.nans = place.at("nans").get_int();
  if (place.has("metric")) accuracy.metric = or_nan(place.at("metric"));
  return accuracy;
}

Json candidate_json(const CandidateReport& row) {
  Json json = {{"name", row.name}, {"backend", row.backend}, {"key", row.key}};
  if (row.is_eager || row.is_fp32) json["baseline"] = row.is_eager ? "eager" : "fp32";
  json["verdict"] = to_string(row.verdict);
  json["reason"] = row.reason;
  if (!row.stopped.empty()) json["stopped"] = row.stopped;
  json["latency_ms"] = row.latency_ms;
  json["throughput"] = row.throughput;
  json["times"] = times_json(row.times);
  json["accuracy"] = accuracy_json(row.accuracy);
  json["bytes"] = row.bytes;
  json["peak_bytes"] = optional_json(row.peak_bytes);
  json["compile_ms"] = row.compile_ms;
  return json;
}

CandidateReport candidate_of(const JsonCursor& place) {
  CandidateReport row;
  row.name = place.at("name").get_string();
  row.backend = place.at("backend").get_string();
  row.key = place.at("key").get_string();
  if (place.has("baseline")) {
    row.is_eager = place.at("baseline").get_string() == "eager";
    row.is_fp32 = !row.is_eager;
  }
  const std::string verdict = place.at("verdict").get_string();
  const auto found = std::find_if(std::begin(kVerdicts), std::end(kVerdicts),
                                  [&](Verdict one) { return to_string(one) == verdict; });
  if (found == std::end(kVerdicts)) place.at("verdict").fail_here("no verdict");
  row.verdict = *found;
  row.reason = place.at("reason").get_string();
  if (place.has("stopped")) row.stopped = place.at("stopped").get_string();
  row.latency_ms = amount_of(place.at("latency_ms"));
  row.throughput = amount_of(place.at("throughput"));
  row.times = times_of(place.at("times"));
  row.accuracy = accuracy_of(place.at("accuracy"));
  row.bytes = place.at("bytes").get_int();
  if (!place.at("peak_bytes").is_null()) row.peak_bytes = place.at("peak_bytes").get_int();
  row.compile_ms = amount_of(place.at("compile_ms"));
  return row;
}

std::vector<SampleShape> shapes_of(const JsonCursor& place) {
  std::vector<SampleShape> shapes;
  for (size_t i = 0; i < place.size(); ++i) {
    const JsonCursor entry = place.at(i);
    SampleShape shape;
    for (size_t t = 0; t < entry.at("tensors").size(); ++t) {
      const JsonCursor tensor = entry.at("tensors").at(t);
      SampleTensor described{tensor.at("name").get_string(), tensor.at("dtype").get_string(), {}};
      for (size_t d = 0; d < tensor.at("sizes").size(); ++d)
        described.sizes.push_back(tensor.at("sizes").at(d).get_int());
      shape.tensors.push_back(std::move(described));
    }
    if (!entry.at("batch").is_null()) shape.batch = entry.at("batch").get_int();
    shape.calls = static_cast<size_t>(std::max<int64_t>(0, entry.at("calls").get_int()));
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

std::vector<std::string> texts_of(const JsonCursor& place) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < place.size(); ++i) texts.push_back(place.at(i).get_string());
  return texts;
}

std::vector<SampleRange> ranges_of(const JsonCursor& place) {
  std::vector<SampleRange> ranges;
  for (size_t i = 0; i < place.size(); ++i) {
    const JsonCursor entry = place.at(i);
    SampleRange range;
    range.symbol = entry.at("symbol").get_string();
    range.min = entry.at("min").get_int();
    range.max = entry.at("max").is_null() ? std::numeric_limits<int64_t>::max() : entry.at("max").get_int();
    range.declared = entry.at("declared").get_bool();
    range.checks = texts_of(entry.at("checks"));
    ranges.push_back(std::move(range));
  }
  return ranges;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kChosen:
      return "chosen";
    case Verdict::kValid:
      return "valid";
    case Verdict::kDropped:
      return "dropped";
    case Verdict::kFailed:
      return "failed";
    case Verdict::kNotTried:
      break;
  }
  return "not tried";
}

nlohmann::ordered_json shapes_json(const std::vector<SampleShape>& shapes) {
  Json list = Json::array();
  for (const SampleShape& shape : shapes) {
    Json tensors = Json::array();
    for (const SampleTensor& tensor : shape.tensors)
      tensors.push_back({{"name", tensor.name}, {"dtype", tensor.dtype}, {"sizes", tensor.sizes}});
    list.push_back({{"tensors", tensors}, {"batch", optional_json(shape.batch)}, {"calls", shape.calls}});
  }
  return list;
}

nlohmann::ordered_json ranges_json(const std::vector<SampleRange>& ranges) {
  Json list = Json::array();
  for (const SampleRange& range : ranges) {
    const bool open = range.max == std::numeric_limits<int64_t>::max();
    list.push_back({{"symbol", range.symbol},
                    {"min", range.min},
                    {"max", open ? Json(nullptr) : Json(range.max)},
                    {"declared", range.declared},
                    {"checks", range.checks}});
  }
  return list;
}

std::string dump_json(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string TuneReport::to_json() const {
  Json json = {
      {"format", kFormat}, {"format_version", kVersion}, {"model", model}, {"model_hash", model_hash}};
  json["cpu"] = cpu;
  json["isa"] = isa;
  json["threads"] = threads;
  json["halftone"] = version;
  json["strategy"] = strategy;
  json["least_cosine"] = min_cosine;
  json["metric"] = metric;
  json["shapes"] = shapes_json(shapes);
  json["ranges"] = ranges_json(ranges);
  json["held_out"] = held_out;
  json["synthetic"] = synthetic;
  json["chosen"] = chosen;
  json["won"] = won;
  json["met"] = met;
  json["seconds"] = seconds;
  json["measured_at"] = measured_at;
  json["estimator"] = "median over the rounds of the ratio to eager in the same round";
  json["rounds"] = rounds;
  json["disturbed_rounds"] = disturbed;
  json["watched"] = watched;
  json["from_cache"] = from_cache;
  json["notes"] = notes;
  json["candidates"] = Json::array();
  for (const CandidateReport& row : candidates) json["candidates"].push_back(candidate_json(row));
  return dump_json(json);
}

TuneReport TuneReport::from_json(std::string_view json) {
  const nlohmann::json parsed = parse_json(json, "tuning report");
  const JsonCursor root(parsed, "tuning report");
  if (!root.has("format") || root.at("format").get_string() != kFormat) root.fail_here("no tuning report");
  if (root.at("format_version").get_int() != kVersion)
    fail(ErrorCode::kUnsupported, "tuning report: version {}, this Halftone reads {}",
         root.at("format_version").get_int(), kVersion);
  TuneReport report;
  report.model = root.at("model").get_string();
  report.model_hash = root.at("model_hash").get_string();
  report.cpu = root.at("cpu").get_string();
  report.isa = root.at("isa").get_string();
  report.threads = static_cast<int>(root.at("threads").get_int());
  report.version = root.at("halftone").get_string();
  report.strategy = root.at("strategy").get_string();
  report.min_cosine = root.at("least_cosine").get_double();
  report.metric = root.at("metric").get_string();
  report.shapes = shapes_of(root.at("shapes"));
  report.ranges = ranges_of(root.at("ranges"));
  report.held_out = static_cast<int>(root.at("held_out").get_int());
  report.synthetic = static_cast<int>(root.at("synthetic").get_int());
  report.chosen = root.at("chosen").get_string();
  report.won = root.at("won").get_bool();
  if (root.has("met")) report.met = root.at("met").get_bool();
  report.seconds = amount_of(root.at("seconds"));
  report.measured_at = root.at("measured_at").get_string();
  if (root.has("rounds")) {  // reports of 0.2.0 do not have these
    report.rounds = static_cast<int>(root.at("rounds").get_int());
    report.disturbed = static_cast<int>(root.at("disturbed_rounds").get_int());
    report.watched = root.at("watched").get_bool();
  }
  report.from_cache = root.at("from_cache").get_bool();
  report.notes = texts_of(root.at("notes"));
  const JsonCursor rows = root.at("candidates");
  for (size_t i = 0; i < rows.size(); ++i) report.candidates.push_back(candidate_of(rows.at(i)));
  return report;
}

const CandidateReport* TuneReport::find(std::string_view name) const {
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const CandidateReport& row) { return row.name == name; });
  return found == candidates.end() ? nullptr : &*found;
}

}  // namespace halftone
