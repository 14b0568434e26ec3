// Opens a model's file, whatever kind it is.
#pragma once

#include <memory>

#include "command_line.h"
#include "halftone/graph_module.h"

namespace halftone::cli {

/// Refuses what is not a file (kNotFound, kInvalidArgument), then loads the custom operators.
void prepare_to_open(const ModelOptions& options);

/// Whether it goes to the reader of .ht files.
bool is_checkpoint_file(const std::string& path);

/// Whether it goes to the reader of .pt2 files.
bool is_exported_file(const std::string& path);

/// Loads the custom operators and then the model. The kind is told by the file's first bytes, then by its
/// name; a kind that Halftone does not read is kUnsupported, and the message says what the file seems to be.
std::shared_ptr<GraphModule> open_model(const ModelOptions& options);

}  // namespace halftone::cli
