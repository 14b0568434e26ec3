// The front doors: how a model becomes a GraphModule.
#pragma once

#include <memory>
#include <string>
#include <string_view>

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
/// Graphs from files may call its operators from then on.
void load_operator_library(const std::string& path);

/// Graphs from files may call a fixed list of operators (docs/operators.md), Halftone's own, and what the
/// caller allows: with this, those of a namespace that the program itself registered ("torchvision"), as many
/// as there are now. kNotFound where there are none; kInvalidArgument for aten and inductor, which do too
/// much.
void allow_operators(std::string_view name_space);

}  // namespace halftone
