// The saved backend in a .ht file: its type, its config, how it was tuned, what it
// was built with. Without torch: names are looked up elsewhere.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/container/ht_file.h"
#include "checkpoint/container/ht_value.h"

namespace halftone {

struct HtBackend {
  std::string type;        ///< "QuantBackend"
  std::string config;      ///< a JSON object
  std::string device;      ///< "cpu"
  std::string state;       ///< when it was saved: "ACTIVE"
  bool converted = false;  ///< whether the file holds the model after conversion, or the one before
};

/// Part of the metadata, each where it is there.
struct HtLifecycle {
  std::optional<HtBackend> backend;
  std::string tuning;  ///< a JSON object, or empty
  std::vector<HtSample> samples;
};

/// Keys and values of the metadata. kInvalidArgument if `tuning` is not a JSON object within the limits.
std::map<std::string, std::string> lifecycle_metadata(const HtLifecycle& lifecycle);
/// kCorruptFile with file and key.
HtLifecycle read_lifecycle(const HtMetadata& metadata);

}  // namespace halftone
