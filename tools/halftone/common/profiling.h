// `halftone run --profile` and `--trace`: where the time of a compiled model goes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "halftone/compile/compile.h"

namespace halftone::cli {

class Console;

struct ProfileRequest {
  bool tables = false;
  std::string trace_path;  ///< empty: no trace
  bool wanted() const { return tables || !trace_path.empty(); }
};

/// Prints the tables unless `json`, writes the trace (kIo), returns everything for JSON.
nlohmann::ordered_json profile_model(Session& session, const CompiledGraph& compiled,
                                     const std::vector<c10::IValue>& inputs, const ProfileRequest& request,
                                     bool json, Console& console);

}  // namespace halftone::cli
