// The report of halftone compare, as text and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "halftone/quant/diagnose.h"
#include "halftone/tune/measure.h"

namespace halftone::cli {

struct ComparedModel {
  std::string path;
  std::string backend;
  int64_t bytes = 0;  ///< of the file
};

/// One result, of all calls together.
struct ComparedOutput {
  std::string name;
  std::string path;
  std::string shape;  ///< of the first call: "float32 [2, 64]"
  ErrorMeasure measure;
  int64_t beyond = 0;  ///< elements that --tolerance refuses
};

struct ComparedTimes {
  MeasuredTime a, b;
  double speedup = 0;  ///< a's time divided by b's, median over the rounds
  Interval interval;   ///< of that
  int rounds = 0;
};

struct Comparison {
  ComparedModel a, b;
  std::vector<std::string> calls;
  std::vector<ComparedOutput> outputs;
  std::optional<ComparedTimes> times;
  std::string no_times;               ///< why they are missing; empty: they were not requested
  std::vector<std::string> findings;  ///< what breaks a limit that was given
};

std::string comparison_text(const Comparison& comparison);
nlohmann::ordered_json comparison_json(const Comparison& comparison);

}  // namespace halftone::cli
