// Writes a captured model into a .ht file and reads it back: the part that plain checkpoints and those of
// backends share.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/container/ht_file.h"
#include "checkpoint/records/packed_blocks.h"
#include "checkpoint/records/stored_tensors.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

/// What is stored of a module, and where.
struct GraphContent {
  StoredTensors stored;
  std::vector<HtRecord> tensors;
  std::vector<HtRecord> inputs;  ///< of the tensors among the sample inputs
  std::vector<PackedRecord> packed;
  std::vector<HtRecord> extra;
};

struct CollectOptions {
  bool packed = false;
  bool sample_inputs = true;
  std::span<const at::Tensor> extra;  ///< stored besides, as __halftone__.input.N
};

/// Model tensors first, in the order of their names, then those of the sample inputs, then packed copies,
/// then the others.
GraphContent collect_graph(const GraphModule& module, const CollectOptions& options);

/// The metadata of kind "graph". Without the sample inputs where they were not collected.
std::map<std::string, std::string> describe_graph(const GraphModule& module, const GraphContent& content,
                                                  const CollectOptions& options);

/// A file that cannot be read back must not be written (kUnsupported): nesting that is too deep, a graph
/// whose text does not parse.
void require_readable_graph(const std::map<std::string, std::string>& metadata, const std::string& path);

/// The model of a file whose frame has been checked. kCorruptFile, kUnsupported.
std::shared_ptr<GraphModule> restore_graph(const HtFile& file);

}  // namespace halftone
