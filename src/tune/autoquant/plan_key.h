// The key of a plan: two plannings with equal keys may share one.
#pragma once

#include <string>
#include <vector>

#include "halftone/tune/autoquant.h"
#include "tune/samples/sample_layout.h"

namespace halftone::aq {

/// A hash of the model, the shapes and how often they are seen, the validation calls' bytes, the options that
/// matter (not the time limit: plans that it cut short are not kept) and the machine. 64 digits.
std::string plan_key(const std::string& model_hash, const SampleLayout& samples,
                     const std::vector<double>& weights, const AutoquantOptions& options);

}  // namespace halftone::aq
