// From what calibration recorded to a plan: measure, bound, budget, final comparison.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "halftone/tune/autoquant.h"
#include "tune/autoquant/recorder.h"
#include "tune/samples/sample_layout.h"

namespace halftone::aq {

struct PlanInput {
  const MarkedModel& model;
  const Recorder& recorder;
  const SampleLayout& layout;
  std::vector<double> shape_weights;  ///< calls of each of layout.shapes, as a share of all
  std::vector<LayerInfo> unseen;      ///< layers that calibration did not come to
  const AutoquantOptions& options;
  std::chrono::steady_clock::time_point start;  ///< of the time limit
};

struct PlanResult {
  AutoquantPlan plan;    ///< without what names model and machine
  bool complete = true;  ///< false: the time limit cut it short, so it is not worth keeping
};

PlanResult make_plan(const PlanInput& input);

/// fp32, then the options' schemes, each once. kInvalidArgument for unknown ones.
std::vector<AutoquantScheme> schemes_to_try(const AutoquantOptions& options);

}  // namespace halftone::aq
