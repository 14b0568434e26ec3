// Jobs as one line of JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "halftone/bench/bench.h"
#include "tune/report/report_json.h"

namespace halftone {
namespace {

void read_baseline(const JsonCursor& json, BaselineOptions& options) {
  for (const std::string& name : json.keys()) {
    try {
      set_baseline_option(options, name + "=" + json.at(name).get_string());
    } catch (const Error& error) {
      json.fail_here(error.what());
    }
  }
}

void read_job_field(const JsonCursor& json, const std::string& key, BenchJob& job) {
  const JsonCursor value = json.at(key);
  const auto unsigned_number = [&] {
    if (!value.raw().is_number_unsigned()) value.fail_here("must be a number from 0 on");
    return value.raw().get<uint64_t>();
  };
  if (key == "model")
    job.model = value.get_string();
  else if (key == "mode")
    job.mode = value.get_string();
  else if (key == "scheme")
    job.scheme = value.get_string();
  else if (key == "backend")
    job.backend = value.get_string();
  else if (key == "performance")
    job.performance = value.get_bool();
  else if (key == "accuracy")
    job.accuracy = value.get_bool();
  else if (key == "layers")
    job.layers = value.get_bool();
  else if (key == "batch_size")
    job.batch_size = value.get_int();
  else if (key == "shapes")
    job.shapes = value.get_string();
  else if (key == "seconds")
    job.seconds = value.get_double();
  else if (key == "threads")
    job.threads = static_cast<int>(std::clamp<int64_t>(value.get_int(), -1, 1 << 20));
  else if (key == "seed")
    job.seed = unsigned_number();
  else if (key == "baseline")
    read_baseline(value, job.baseline);
  else if (key == "cache_dir")
    job.cache_dir = value.get_string();
  else
    value.fail_here("no field of a job");
}

}  // namespace

std::string to_json(const BenchJob& job) {
  nlohmann::ordered_json baseline = nlohmann::ordered_json::object();
  for (const BaselineOption& option : list_baseline_options(job.baseline))
    baseline[option.name] = option.value;
  const nlohmann::ordered_json json = {
      {"model", job.model},
      {"mode", job.mode},
      {"scheme", job.scheme},
      {"backend", job.backend},
      {"performance", job.performance},
      {"accuracy", job.accuracy},
      {"layers", job.layers},
      {"batch_size", job.batch_size},
      {"shapes", job.shapes},
      {"seconds", job.seconds},
      {"threads", job.threads},
      {"seed", job.seed},
      {"baseline", baseline},
      {"cache_dir", job.cache_dir},
  };
  return dump_json(json, -1);
}

BenchJob bench_job_from_json(std::string_view json) {
  const nlohmann::json parsed = parse_json(json, "job");
  const JsonCursor cursor(parsed, "job");
  BenchJob job;
  for (const std::string& key : cursor.keys()) read_job_field(cursor, key, job);
  return job;
}

}  // namespace halftone
