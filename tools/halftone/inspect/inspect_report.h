// The report of `halftone inspect`, as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/layer_times.h"
#include "halftone/cli/summary.h"

namespace halftone::cli {

struct InspectReport {
  const GraphModule* module = nullptr;  ///< borrowed
  std::string path;
  int64_t file_bytes = 0;
  ModelSummary summary;
  std::vector<std::string> state;  ///< buffers that the model writes to
  std::optional<LayerTimes> times;
};

/// Tables of at most kColumns columns.
std::string report_text(const InspectReport& report);
nlohmann::ordered_json report_json(const InspectReport& report);

}  // namespace halftone::cli
