// The front doors: how a model becomes a GraphModule.
#pragma once

#include <memory>
#include <string>

#include "halftone/graph_module.h"

namespace halftone {

struct LoadOptions {
  bool map_weights = true;  ///< map the file; false: read it, safe against a file that is truncated later
  bool verify_checksums = true;  ///< compare each member with the CRC-32 of the container
};

/// Reads what torch.export.save of torch 2.13 to 2.15 writes. No Python, no code from the file. kNotFound,
/// kIo, kCorruptFile with file and place; kUnsupported with every node that cannot be run and its layer.
std::shared_ptr<GraphModule> load_pt2(const std::string& path, const LoadOptions& options = {});

/// Loads a shared library that registers custom operators. It is code: only on the caller's explicit wish.
void load_operator_library(const std::string& path);

}  // namespace halftone
