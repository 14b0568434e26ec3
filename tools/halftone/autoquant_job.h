// The work of halftone autoquant, which quantize --scheme autoquant asks for too.
#pragma once

#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/inputs.h"
#include "common/output_file.h"
#include "halftone/tune/autoquant.h"

namespace halftone::cli {

struct AutoquantRequest {
  ModelOptions model;
  InputOptions inputs;
  std::vector<std::string> schemes;
  double min_cosine = AutoquantOptions{}.min_cosine;
  double min_layer_cosine = AutoquantOptions{}.min_layer_cosine;
  std::string include;
  std::string exclude;
  double time_limit = AutoquantOptions{}.time_limit;
  bool no_race = false;
  bool allow_unseen = false;
  std::string cache;  ///< empty: default_cache("autoquant")
  bool no_cache = false;
  std::string plan_out;
  std::string plan;  ///< to replay
  OutputOptions output;
};

/// Plans, or reads a plan, and writes what is asked for. UsageError if nothing is.
void run_autoquant(const AutoquantRequest& request, const CommonOptions& common, Console& console);

void show_autoquant_cache(const AutoquantRequest& request, const CommonOptions& common, Console& console);
void clear_autoquant_cache(const AutoquantRequest& request, const CommonOptions& common, Console& console);

}  // namespace halftone::cli
