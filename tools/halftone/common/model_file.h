// Opens a model's file as the command line says.
#pragma once

#include <memory>

#include "common/command_line.h"
#include "halftone/capture/open_model.h"
#include "halftone/graph/graph_module.h"

namespace halftone::cli {

/// Refuses what is no file (as model_file_kind()), then loads the custom operators.
ModelFileKind prepare_to_open(const ModelOptions& options);

/// prepare_to_open(), then halftone::open_model().
std::shared_ptr<GraphModule> open_model(const ModelOptions& options);

}  // namespace halftone::cli
