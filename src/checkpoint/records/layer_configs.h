// The quantized layers of a model and their configs, for the metadata of a .ht file.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "checkpoint/container/ht_file.h"
#include "halftone/graph/graph.h"

namespace halftone {

/// Layer → canonical JSON of its config.
using LayerConfigs = std::map<std::string, std::string>;

/// Read off the halftone::* nodes, those of subgraphs too. kInvalidArgument if a node's constants are no
/// config.
LayerConfigs layer_configs(const Graph& graph);

nlohmann::json configs_json(const LayerConfigs& configs);
/// As the file tells them; types are not looked up.
LayerConfigs read_configs(const HtMetadata& metadata);

}  // namespace halftone
