// The metadata of a captured model in a .ht file: written from a GraphModule, read back and
// checked.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/container/ht_file.h"
#include "checkpoint/container/ht_lifecycle.h"
#include "checkpoint/records/layer_configs.h"
#include "checkpoint/records/packed_blocks.h"
#include "checkpoint/records/sample_inputs.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

/// The metadata of kind "graph", parsed. Nothing here has looked at a tensor's bytes.
struct GraphMetadata {
  std::unique_ptr<Graph> graph;
  CallSpec call;
  std::map<std::string, SymbolRange> ranges;
  std::vector<ShapeGuard> guards;
  std::vector<std::string> notes;
  std::vector<HtRecord> tensors;
  std::vector<HtValue> sample_inputs;  ///< none of them nested
  HtLifecycle lifecycle;
  LayerConfigs configs;
  std::vector<PackedRecord> packed;
};

/// kCorruptFile with file and key; kUnsupported if the graph has operators that this process does not
/// know.
GraphMetadata read_graph_metadata(const HtMetadata& metadata);

/// Records by name; kCorruptFile if a name stands twice.
std::vector<HtRecord> read_records(const HtMetadata& metadata, const std::string& key);

/// Every way in which graph, call and stored tensors do not fit each other, one sentence each.
std::vector<std::string> fit_findings(const GraphMetadata& metadata, const HtFile& file);

}  // namespace halftone
