// Opens a model's file, whatever kind it is.
#pragma once

#include <memory>

#include "command_line.h"
#include "halftone/graph_module.h"

namespace halftone::cli {

/// Refuses what is no file (kNotFound, kInvalidArgument), then loads the custom operators.
void prepare_to_open(const ModelOptions& options);

/// Loads the custom operators and then the model. The kind is told by the file's name and first bytes; a kind
/// that Halftone does not read is kUnsupported, and the message says what the file seems to be.
std::shared_ptr<GraphModule> open_model(const ModelOptions& options);

}  // namespace halftone::cli
